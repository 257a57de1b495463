// Two launches, as the textbooks and the course report do it: every thread strides through the array, warps fold by
// shuffles, the block through 32 slots of shared memory, and each block leaves one partial; a second launch of one
// block folds the partials.
//
// launch: threads=256 max_blocks=1024
// ops: sums, selections, tests
// dtypes: *
// ops: prod
// dtypes: float, bool
// error: integers, selections and tests exact; float sums and products γ_n in the accumulator's precision (float64 for float64 and for squares of bfloat16 and float32, else float32), rounded once to the dtype
#include "block.cuh"
#include "traverse.cuh"

template <class R, class A = typename R::Accumulator, class T = typename R::Element>
__global__ void __launch_bounds__(256)
two_pass(const T* data, uint64 count, uint64 first, uint32 omit_nan, A* partials, uint32*, uint64*) {
    const A a = block_fold(fold_elements<R>({data, count, first, omit_nan != 0}));
    if (threadIdx.x == 0) partials[blockIdx.x] = a;
}

template <class R, class A = typename R::Accumulator>
__global__ void __launch_bounds__(256) two_pass_fold(const A* partials, uint64 count, A*, uint64* outcome) {
    const A a = fold_partials(partials, count);
    if (threadIdx.x == 0) a.store(outcome);
}
