// Kahan–Babuška–Neumaier summation: every addition's rounding error is found exactly (Knuth's two-sum) and summed
// beside the total; merging two accumulators adds their totals the same way. Squares are split exactly by one fused
// multiply-add. The error no longer grows with n until n · u nears 1.
//
// launch: threads=256 blocks_per_multiprocessor=4 flight=4
// ops: sums
// dtypes: float
// error: u |Σx| + γ_n² Σ|x| in the accumulator's precision (float64 for float64 and for squares of bfloat16 and float32, else float32), rounded once to the dtype; partial sums must not overflow
#include "messages.cuh"
#include "traverse.cuh"

__device__ inline float product_error(float x, float y, float product) { return __fmaf_rn(x, y, -product); }
__device__ inline double product_error(double x, double y, double product) { return __fma_rn(x, y, -product); }

template <class F>
struct Compensated {
    F total, correction;
    static __device__ Compensated identity() { return {F(-0.0), F(0)}; }
    __device__ void add(F x) {
        const F sum = total + x;
        const F rounded = sum - total;
        correction += (total - (sum - rounded)) + (x - rounded);
        total = sum;
    }
    __device__ void add_square(F x) {
        const F square = x * x;
        add(square);
        correction += product_error(x, x, square);
    }
    __device__ void merge(const Compensated& other) {
        add(other.total);
        correction += other.correction;
    }
    // The two-sum of an infinity is NaN; the total alone is right then.
    __device__ void store(uint64* words) const {
        store_real(words, total, isfinite(total) ? correction : F(0));
    }
};

template <class R>
using Compensating = typename R::template With<Compensated<typename R::Accumulator::Real>>;

template <class R, class C = Compensating<R>, class A = typename C::Accumulator, class T = typename R::Element>
__global__ void __launch_bounds__(256, 4)
compensated(const T* data, uint64 count, uint64 first, uint32 omit_nan, A*, uint64* messages, uint64* outcome) {
    const A a = fold_vectors<C, 4>({data, count, first, omit_nan != 0});
    finish_in_last_block(a, messages, outcome);
}
