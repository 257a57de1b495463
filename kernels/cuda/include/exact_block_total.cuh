// A total of one block in shared memory, laid out as that of a launch (exact_total.cuh).
//
// An atomic addition of 64 bits to shared memory is a loop there, which compares and swaps until no other thread came between. Two of
// 32 bits are not: the lower one returns what was there, and so says whether it carries.
#pragma once
#include "exact_total.cuh"

struct BlockTotal {
    uint64* words;

    __device__ BlockTotal second() const { return {words + Total::OF_VALUES}; }

    // Adds value · 2^position units; |value| < 2^95.
    __device__ void add(int128 value, int position) const {
        uint64* digit = words + Total::DIGITS + position / 32;
        value = int128(uint128(value) << position % 32);
#pragma unroll 1  // few registers: sums come here seldom
        for (int k = 0; k < 4; ++k, ++digit, value >>= 32) add_to(digit, k < 3 ? int64(uint32(value)) : int64(value));
    }

    static __device__ void add_to(uint64* word, int64 part) {
        const uint32 low = uint32(part);
        if (!part) return;
        uint32* const halves = reinterpret_cast<uint32*>(word);
        const uint32 carried = low && atomicAdd(halves, low) > ~low, high = uint32(uint64(part) >> 32) + carried;
        if (high) atomicAdd(halves + 1, high);
    }

    // Adds all `size` words to the launch's total: each is two numbers below 2^32. All threads of the block must take part.
    __device__ void add_to(const Total& total, int size) const {
        for (int k = threadIdx.x; k < size; k += blockDim.x) {
            const int64 word = words[k];
            if (word == 0) continue;
            atomicAdd(total.words + k, uint64(uint32(word)));
            atomicAdd(total.words + k + 1, uint64(word >> 32));
        }
    }
};
