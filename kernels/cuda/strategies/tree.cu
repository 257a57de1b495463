// A tree in shared memory: each thread leaves its accumulator in a slot, then half of the threads absorb the slots of
// the other half, a quarter those of the next, until one is left (stride halving, so that neighbours read neighbouring
// banks). The same tree folds the blocks' partials in a second launch.
//
// launch: threads=256 max_blocks=1024
// ops: sums, selections, tests
// dtypes: *
// ops: prod
// dtypes: float, bool
// error: integers, selections and tests exact; float sums and products γ_n in the accumulator's precision (float64 for float64 and for squares of bfloat16 and float32, else float32), rounded once to the dtype
#include "block.cuh"
#include "traverse.cuh"

template <class A>
__device__ A fold_tree(const A& a) {
    __shared__ alignas(16) unsigned char memory[256 * sizeof(A)];
    A* const slots = reinterpret_cast<A*>(memory);
    slots[threadIdx.x] = a;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) slots[threadIdx.x].merge(slots[threadIdx.x + stride]);
        __syncthreads();
    }
    return slots[0];
}

template <class R, class A = typename R::Accumulator, class T = typename R::Element>
__global__ void __launch_bounds__(256)
tree(const T* data, uint64 count, uint64 first, uint32 omit_nan, A* partials, uint32*, uint64*) {
    const A a = fold_tree(fold_elements<R>({data, count, first, omit_nan != 0}));
    if (threadIdx.x == 0) partials[blockIdx.x] = a;
}

template <class R, class A = typename R::Accumulator>
__global__ void __launch_bounds__(256) tree_fold(const A* partials, uint64 count, A*, uint64* outcome) {
    A a = A::identity();
    for (uint64 k = threadIdx.x; k < count; k += blockDim.x) a.merge(partials[k]);
    a = fold_tree(a);
    if (threadIdx.x == 0) a.store(outcome);
}
