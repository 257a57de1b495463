// One launch whose blocks all run at the same time (a cooperative launch promises that), so that they may wait for
// each other: all leave their partial, all meet at a barrier across the grid, then the first block folds.
//
// launch: threads=256 blocks_per_multiprocessor=4 flight=4 cooperative
// ops: sums, selections, tests
// dtypes: *
// ops: prod
// dtypes: float, bool
// error: integers, selections and tests exact; float sums and products γ_n in the accumulator's precision (float64 for float64 and for squares of bfloat16 and float32, else float32), rounded once to the dtype
#include "block.cuh"
#include "traverse.cuh"

// Returns once every block has come. `state` holds two words, 0 at the first use: blocks arrived, and barriers passed.
__device__ void grid_barrier(uint32* state) {
    __syncthreads();
    if (threadIdx.x == 0) {
        volatile uint32* const passed = state + 1;
        const uint32 before = *passed;
        __threadfence();  // also: the count of barriers is read before this block is counted as arrived
        if (atomicInc(state, gridDim.x - 1) == gridDim.x - 1)
            atomicAdd(state + 1, 1);
        else
            while (*passed == before) __nanosleep(32);
        __threadfence();
    }
    __syncthreads();
}

template <class R, class A = typename R::Accumulator, class T = typename R::Element>
__global__ void __launch_bounds__(256, 4)
cooperative(const T* data, uint64 count, uint64 first, uint32 omit_nan, A* partials, uint32* state, uint64* outcome) {
    A a = block_fold(fold_vectors<R, 4>({data, count, first, omit_nan != 0}));
    if (threadIdx.x == 0) partials[blockIdx.x] = a;
    grid_barrier(state);
    if (blockIdx.x > 0) return;
    a = fold_partials(partials, gridDim.x);
    if (threadIdx.x == 0) a.store(outcome);
}
