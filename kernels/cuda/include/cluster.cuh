// Thread-block clusters, in the instructions of the PTX ISA (chapters on barrier.cluster, mapa and elect), from Hopper on.
#pragma once
#include "elements.cuh"

// Waits for all threads of the cluster's blocks; what they wrote before is seen after.
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
__device__ inline void cluster_sync() {
    cluster_arrive();
    cluster_wait();
}

// This block's number in its cluster.
__device__ inline uint32 cluster_rank() {
    uint32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Whether this thread is the elected one of its warp; all threads of the warp call it.
__device__ inline bool elected() {
    uint32 chosen;
    asm volatile(
        "{\n"
        " .reg .pred p;\n"
        " elect.sync _|p, 0xffffffff;\n"
        " selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(chosen));
    return chosen != 0;
}

// Reads from block `rank` of the cluster what lies where this block has `at`, in shared memory.
template <class A>
__device__ A load_from_rank(const A* at, uint32 rank) {
    static_assert(sizeof(A) % 4 == 0);
    uint32 words[sizeof(A) / 4], there;
    const uint32 here = uint32(__cvta_generic_to_shared(at));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
#pragma unroll
    for (int k = 0; k < sizeof(A) / 4; ++k)
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(words[k]) : "r"(there + 4 * k) : "memory");
    A a;
    memcpy(&a, words, sizeof(A));
    return a;
}
