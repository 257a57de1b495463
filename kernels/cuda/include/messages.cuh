// Messages between blocks: accumulators travel without a fence or a counter. Every four bytes travel with a flag in one store
// of eight, so that a block that sees the flag has the bytes (as in the LL protocol of NCCL). The memory at `messages` is 0
// before the first launch, and is 0 again after each launch.
#pragma once
#include "block.cuh"

template <class A>
struct Messages {
    static constexpr int WORDS = sizeof(A) / 4;
    // Messages that a thread looks for at a time, so that their latencies overlap; fewer where registers would not do.
    static constexpr int AT_ONCE = WORDS <= 2 ? 4 : WORDS <= 4 ? 2 : 1;
    uint64* messages;

    __device__ void send(uint32 block, const A& a) const {
        uint32 words[WORDS];
        memcpy(words, &a, sizeof(A));
#pragma unroll
        for (int k = 0; k < WORDS; ++k) put(messages + block * WORDS + k, uint64(1) << 32 | words[k]);
    }

    // Waits for the messages of blocks `block`, `block + step`, … below `end`, AT_ONCE of them at most, and merges these.
    __device__ void receive(A& a, uint32 block, uint32 step, uint32 end) const {
        uint64 seen[AT_ONCE][WORDS];
#pragma unroll
        for (int n = 0; n < AT_ONCE; ++n)
#pragma unroll
            for (int k = 0; k < WORDS; ++k)
                if (block + n * step < end) seen[n][k] = look(messages + (block + n * step) * WORDS + k);
#pragma unroll
        for (int n = 0; n < AT_ONCE; ++n) {
            if (block + n * step >= end) break;
            uint32 words[WORDS];
#pragma unroll
            for (int k = 0; k < WORDS; ++k) {
                uint64* const at = messages + (block + n * step) * WORDS + k;
                while (seen[n][k] >> 32 == 0) seen[n][k] = look(at);
                words[k] = uint32(seen[n][k]);
                put(at, 0);
            }
            A message;
            memcpy(&message, words, sizeof(A));
            a.merge(message);
        }
    }

  private:
    // No access is torn, reordered with another at its address, or served from the multiprocessor's own cache.
    static __device__ void put(uint64* at, uint64 word) {
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(word) : "memory");
    }
    static __device__ uint64 look(const uint64* at) {
        uint64 word;
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
        return word;
    }
};

// Each block folds its accumulators to one and sends that to the last block, which folds what it receives in the order of its
// threads and stores the outcome. Blocks start in the order of their index, so the last block waits for no block that could
// not run. A single block waits for nothing.
template <class A>
__device__ void finish_in_last_block(A a, uint64* messages, uint64* outcome) {
    __shared__ alignas(16) unsigned char memory[2][32 * sizeof(A)];
    A* const own = reinterpret_cast<A*>(memory[0]);
    A* const received = reinterpret_cast<A*>(memory[1]);
    const uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, last = gridDim.x - 1;

    a = warp_fold(a);
    if (lane == 0) own[warp] = a;
    __syncthreads();
    a = warp == 0 && lane < warps ? own[lane] : A::identity();
    if (blockIdx.x < last) {
        if (warp > 0) return;
        a = warp_fold(a);
        if (lane == 0) Messages<A>{messages}.send(blockIdx.x, a);
        return;
    }
    for (uint32 block = threadIdx.x; block < last; block += Messages<A>::AT_ONCE * blockDim.x)
        Messages<A>{messages}.receive(a, block, blockDim.x, last);
    if (last > 32) {  // with fewer, the first warp has them all
        a = warp_fold(a);
        if (lane == 0) received[warp] = a;
        __syncthreads();
        a = lane < warps ? received[lane] : A::identity();
    }
    if (warp > 0) return;
    a = warp_fold(a);
    if (lane == 0) a.store(outcome);
}
