// Folds of many accumulators to one: within a warp, a block, and over the blocks of a grid, always in the same order.
#pragma once
#include "elements.cuh"

template <class A>
__device__ A shuffle_down(const A& a, int distance) {
    static_assert(sizeof(A) % 4 == 0);
    uint32 words[sizeof(A) / 4];
    memcpy(words, &a, sizeof(A));
#pragma unroll
    for (uint32& word : words) word = __shfl_down_sync(~0u, word, distance);
    A moved;
    memcpy(&moved, words, sizeof(A));
    return moved;
}

// Folds the warp's accumulators; lane 0 gets the result.
template <class A>
__device__ A warp_fold(A a) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) a.merge(shuffle_down(a, distance));
    return a;
}

// Folds the block's accumulators through one slot a warp; thread 0 gets the result. All threads must take part, and the
// number of threads must be a multiple of 32. The function may be called again at once.
template <class A>
__device__ A block_fold(A a) {
    __shared__ alignas(16) unsigned char memory[32 * sizeof(A)];
    A* const slots = reinterpret_cast<A*>(memory);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    a = warp_fold(a);
    if (lane == 0) slots[warp] = a;
    __syncthreads();
    if (warp == 0) a = warp_fold(lane < blockDim.x / 32 ? slots[lane] : A::identity());
    __syncthreads();
    return a;
}

// Reads an accumulator that another block wrote, past this multiprocessor's own cache.
template <class A>
__device__ A load_shared_by_grid(const A* at) {
    uint32 words[sizeof(A) / 4];
#pragma unroll
    for (int k = 0; k < sizeof(A) / 4; ++k) words[k] = __ldcg(reinterpret_cast<const uint32*>(at) + k);
    A a;
    memcpy(&a, words, sizeof(A));
    return a;
}

// Folds `count` accumulators in memory by one block; thread 0 gets the result.
template <class A>
__device__ A fold_partials(const A* partials, uint32 count) {
    A a = A::identity();
    for (uint32 k = threadIdx.x; k < count; k += blockDim.x) a.merge(load_shared_by_grid(partials + k));
    return block_fold(a);
}

// Whether this block is the last one to call it. `ticket` must be 0 at the start and is 0 again at the end.
__device__ inline bool last_of_grid(uint32* ticket, uint32 parties) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();  // what this block wrote is seen by whoever sees its ticket
        last = atomicInc(ticket, parties - 1) == parties - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}
