// The total in the GPU's memory, where all sums end: blocks, launches and dtypes add to it in any order.
//
// It is an integer in units of the state's origin (2^-1074 for values, 2^-2148 for products) in digits of 32 bits that
// are held in 64-bit words, so that adding needs no carry: atomic additions of integers commute, and the result is the
// same whatever their order. No last block has to fold anything, no workspace has to be cleared or trusted.
//
// Everything in it is a sum of integers, the counts and the flags (how many blocks saw one) too: the totals of several
// GPUs are put together by adding them word by word, as an all-reduce does (kernels/cuda/exact/total.py).
//
// A number below 2^95 · 2^position adds less than 2^32 to each of four digits. A word holds 2^31 such additions; the
// host knows how many a launch makes at most and fetches the total in time (kernels/cuda/exact/accumulator.py).
#pragma once
#include "elements.cuh"

struct Total {
    static constexpr int COUNT = 0, NANS = 1, FLAGS = 2, DIGITS = 6, OF_VALUES = DIGITS + 72;
    uint64* words;

    // The total of the squares, which lies behind that of the values.
    __device__ Total second() const { return {words + OF_VALUES}; }

    // Adds value · 2^position units; |value| < 2^95.
    __device__ void add(int128 value, int position) const {
        uint64* digit = words + DIGITS + position / 32;
        value = int128(uint128(value) << position % 32);
#pragma unroll
        for (int k = 0; k < 4; ++k, ++digit, value >>= 32) {
            const int64 part = k < 3 ? int64(uint32(value)) : int64(value);  // the last one has the sign
            if (part) atomicAdd(digit, uint64(part));
        }
    }

    // Adds to the count how many elements (or pairs) the whole launch adds.
    __device__ void note_count(uint64 count) const {
        if (blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(words + COUNT, count);
    }

    // Adds the flags and NaNs of all threads of the block; all must take part.
    __device__ void note(uint32 flags, uint32 nans) const {
#pragma unroll
        for (int place = 0; place < 4; ++place) {
            const bool any = __syncthreads_or(flags >> place & 1);
            if (threadIdx.x == 0 && any) atomicAdd(words + FLAGS + place, uint64(1));
        }
        if (nans) atomicAdd(words + NANS, uint64(nans));
    }
};
