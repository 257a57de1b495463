// How many groups begin before a tile of sorted rows, which the tiles before say as soon as they know.
#pragma once
#include "exact_format.cuh"

// How many heads tiles have: `tiles` has 1 more of each that knows, and `dozens` 4 times the sum of each 32 tiles, plus 1, or once the tiles
// before are known 4 times the sum up to their end, plus 2. Hundreds of blocks look at once, and memory takes looks at one line one after
// another: so a tile looks at those of its own 32 and at one word, and only the last of 32 looks farther back.
struct Progress {
    static constexpr uint32 TOGETHER = 32;
    uint64 *tiles, *dozens;

    static __device__ uint64 looked_at(const uint64* at) { return *(const volatile uint64*)at; }
    static __device__ void say(uint64* at, uint64 word) { *(volatile uint64*)at = word; }
    static __device__ uint64 of_warp(uint64 sum) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
        return sum;
    }

    // All lanes of a warp call this once the heads of a tile are counted.
    __device__ void count(uint64 tile, uint32 heads) const {
        const uint32 lane = threadIdx.x % 32;
        if (lane == 0) say(tiles + tile, heads + 1);
        if (tile % TOGETHER != TOGETHER - 1) return;
        const uint64 dozen = tile / TOGETHER;
        uint64 word = uint64(heads) + 1;
        do
            if (lane != TOGETHER - 1) word = looked_at(tiles + dozen * TOGETHER + lane);
        while (!__all_sync(~0u, word != 0));
        const uint64 mine = of_warp(word - 1);
        if (lane == 0 && dozen) say(dozens + dozen, mine << 2 | 1);
        uint64 before = 0;
        for (int64 at = int64(dozen) - 1 - lane; dozen; at -= 32) {
            word = 2;  // before the first there are none
            uint32 ready, whole, needed;
            do {
                if (at >= 0) word = looked_at(dozens + at);
                ready = __ballot_sync(~0u, word != 0);
                whole = __ballot_sync(~0u, word & 2);
                needed = whole ? (whole & -whole) * 2 - 1 : ~0u;  // up to the nearest that knows all
            } while ((ready & needed) != needed);
            before += of_warp(needed >> lane & 1 ? word >> 2 : 0);
            if (whole) break;
        }
        if (lane == 0) say(dozens + dozen, (before + mine) << 2 | 2);
    }

    // How many heads there are before a tile. All lanes of a warp call this.
    __device__ uint64 before(uint64 tile) const {
        const uint32 lane = threadIdx.x % 32;
        const uint64 dozen = tile / TOGETHER;
        const bool near = lane < tile % TOGETHER, far = lane == TOGETHER - 1 && dozen;  // of 32 tiles the last one has 31 before
        uint64 word = 0;
        do {
            if (near) word = looked_at(tiles + dozen * TOGETHER + lane);
            if (far) word = looked_at(dozens + dozen - 1);
        } while (!__all_sync(~0u, (!near || word) && (!far || word & 2)));
        return of_warp(near ? word - 1 : far ? word >> 2 : 0);
    }
};
