// Sixteen bytes of elements, read by one instruction.
#pragma once
#include "elements.cuh"

template <class T>
struct Vector {
    static constexpr int size = 16 / sizeof(T);
    uint32 words[4];

    // `at` must be a multiple of 16. What is read once need not displace anything in the multiprocessor's own cache, but
    // may stay in the level-2 cache for the next launch.
    static __device__ Vector load(const void* at) {
        const uint4 v = __ldcg(static_cast<const uint4*>(at));
        return {{v.x, v.y, v.z, v.w}};
    }

    // The same for what neighbouring threads or the next instructions read the rest of: it stays in the multiprocessor's own cache.
    static __device__ Vector load_kept(const void* at) {
        const uint4 v = __ldg(static_cast<const uint4*>(at));
        return {{v.x, v.y, v.z, v.w}};
    }

    // `lane` must be known at compile time after unrolling, or the words go to local memory.
    __device__ T operator[](int lane) const {
        T element;
        if constexpr (sizeof(T) == 8) {
            const uint64 bits = uint64(words[2 * lane + 1]) << 32 | words[2 * lane];
            memcpy(&element, &bits, 8);
        } else {
            const uint32 bits = words[lane * sizeof(T) / 4] >> (lane * sizeof(T) % 4 * 8);
            memcpy(&element, &bits, sizeof(T));
        }
        return element;
    }
};
