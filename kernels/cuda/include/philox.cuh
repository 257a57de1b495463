// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3" (SC'11): key = the seed, counter = (index, stream 0).
#pragma once
#include "elements.cuh"

struct Words {
    uint32 w0, w1, w2, w3;
};

__device__ inline Words philox(uint64 index, uint64 seed) {
    Words c{uint32(index), uint32(index >> 32), 0, 0};
    uint32 key0 = uint32(seed), key1 = uint32(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const uint64 p0 = uint64(0xD2511F53u) * c.w0, p1 = uint64(0xCD9E8D57u) * c.w2;
        c = {uint32(p1 >> 32) ^ c.w1 ^ key0, uint32(p1), uint32(p0 >> 32) ^ c.w3 ^ key1, uint32(p0)};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return c;
}

__device__ inline uint64 pair(uint32 high, uint32 low) { return uint64(high) << 32 | low; }
