// The time of the machine, which all multiprocessors and all kernels read alike.
#pragma once
#include "elements.cuh"

__device__ inline uint64 now_ns() {
    uint64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
