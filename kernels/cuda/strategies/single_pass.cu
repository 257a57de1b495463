// One launch at the speed of memory: sixteen bytes a read with several reads in flight a thread; the blocks send their
// partials to the last one, which folds them in a fixed order. The same grid gives the same bits in every run.
//
// launch: threads=512 blocks_per_multiprocessor=2 flight=4 rounds=8
// ops: sums, selections, tests
// dtypes: *
// ops: prod
// dtypes: float, bool
// error: integers, selections and tests exact; float sums and products γ_n in the accumulator's precision (float64 for float64 and for squares of bfloat16 and float32, else float32), rounded once to the dtype
#include "messages.cuh"
#include "traverse.cuh"

// Reads in flight a thread where the array is long. An element with its index leaves no registers for more.
template <class R>
constexpr int LONG = 8;
template <class T>
constexpr int LONG<ArgMin<T>> = 4;
template <class T>
constexpr int LONG<ArgMax<T>> = 4;

template <class R, class A = typename R::Accumulator, class T = typename R::Element>
__global__ void __launch_bounds__(512, 2)
single_pass(const T* data, uint64 count, uint64 first, uint32 omit_nan, A*, uint64* messages, uint64* outcome) {
    const A a = fold_vectors<R, 4, LONG<R>>({data, count, first, omit_nan != 0});
    finish_in_last_block(a, messages, outcome);
}
