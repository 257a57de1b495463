// Exact sums of floats: values, magnitudes or squares of any finite elements without a rounding, in one launch.
//
// Each thread adds up its tiles by floating-point arithmetic that is arranged so that nothing rounds (exact_window.cuh,
// exact_buckets.cuh), what it has is moved to integers (exact_digits.cuh), and the blocks add those to a total in memory
// (exact_total.cuh). Only integers are ever put together, so the order of threads, blocks, launches and GPUs cannot show.
#include "exact_buckets.cuh"
#include "exact_window.cuh"

template <class T, int TERMS, int THREADS, bool BUCKETS>
struct SumOf {
    using Type = WindowSum<T, TERMS, THREADS>;
};
template <class T, int TERMS, int THREADS>
struct SumOf<T, TERMS, THREADS, true> {
    using Type = BucketSum<T, TERMS, THREADS>;
};

// Buckets take any exponents at one speed, but a product is too wide for one, and so is a float64.
template <class T, int TERMS>
constexpr bool IN_BUCKETS = TERMS != SQUARES && (is_same<T, float32> || is_same<T, bfloat16>);

template <class T, int TERMS, int THREADS>
using Sum = typename SumOf<T, TERMS, THREADS, IN_BUCKETS<T, TERMS>>::Type;

// BYTES of shared memory a thread: what the launch provides, checked against what is used.
template <class T, int TERMS, int THREADS, int BLOCKS, int FLIGHT, bool AHEAD, int BYTES>
__global__ void __launch_bounds__(THREADS, BLOCKS) exact(const T* data, uint64 count, uint64* words) {
    static_assert(BYTES == Sum<T, TERMS, THREADS>::BYTES);
    extern __shared__ int64 memory[];
    const Total total{words};
    Sum<T, TERMS, THREADS> sum(memory, total);
    for_each_tile<FLIGHT, AHEAD>(Vectors<T>(data, count), sum);
    total.note(sum.specials.flags, sum.specials.nans);
    sum.finish();
}
