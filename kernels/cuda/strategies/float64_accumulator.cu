// A wider accumulator: elements of at most float32 are added up in float64, which costs nothing where memory is the
// limit, and the sum is rounded once at the end.
//
// launch: threads=256 blocks_per_multiprocessor=4 flight=4
// ops: sums
// dtypes: float16, bfloat16, float32
// error: γ_n Σ|x| in float64, rounded once to the dtype
#include "messages.cuh"
#include "traverse.cuh"

template <class R>
using Wider = typename R::template With<Plain<double>>;

template <class R, class W = Wider<R>, class A = typename W::Accumulator, class T = typename R::Element>
__global__ void __launch_bounds__(256, 4)
float64_accumulator(const T* data, uint64 count, uint64 first, uint32 omit_nan, A*, uint64* messages,
                    uint64* outcome) {
    const A a = fold_vectors<W, 4>({data, count, first, omit_nan != 0});
    finish_in_last_block(a, messages, outcome);
}
