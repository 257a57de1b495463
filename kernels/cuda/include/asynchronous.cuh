// Copies of 16 bytes to shared memory that go on while a thread computes, where the chip has them (sm_80); a copy by way of
// registers elsewhere.
#pragma once
#include "elements.cuh"

// Both addresses must be multiples of 16.
__device__ inline void copy_later(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(uint32(__cvta_generic_to_shared(shared))), "l"(global)
                 : "memory");
#else
    *static_cast<uint4*>(shared) = __ldcg(static_cast<const uint4*>(global));
#endif
}

// Ends a group of this thread's copies.
__device__ inline void end_group() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until no more than PENDING of this thread's latest groups are under way.
template <int PENDING>
__device__ void await_groups() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}
