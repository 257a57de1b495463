// Where all sums end: the total in the GPU's memory, to which blocks, launches and dtypes add in any order.
//
// It is an integer in units of the state's origin (2^-1074 for values, 2^-2148 for products) in digits of 32 bits that
// are held in 64-bit words, so that adding needs no carry: atomic additions of integers commute, and the result is the
// same whatever their order. No last block has to fold anything, no workspace has to be cleared or trusted.
//
// A number below 2^95 · 2^position adds less than 2^32 to each of four digits. A word holds 2^31 such additions; the
// host knows how many a launch makes at most and fetches the total in time (kernels/cuda/exact.py).
#pragma once
#include "elements.cuh"

struct Total {
    static constexpr int NANS = 0, FLAGS = 1, DIGITS = 2, OF_VALUES = 74;
    uint64* words;

    // That of the squares, behind that of the values.
    __device__ Total second() const { return {words + OF_VALUES}; }

    // value · 2^position units; |value| < 2^95.
    __device__ void add(int128 value, int position) const {
        uint64* digit = words + DIGITS + position / 32;
        value = int128(uint128(value) << position % 32);
#pragma unroll
        for (int k = 0; k < 4; ++k, ++digit, value >>= 32) {
            const int64 part = k < 3 ? int64(uint32(value)) : int64(value);  // the last one has the sign
            if (part) atomicAdd(digit, uint64(part));
        }
    }

    // Flags and NaNs of all threads of the block; all must take part.
    __device__ void note(uint32 flags, uint32 nans) const {
        uint32 any = 0;
#pragma unroll
        for (uint32 flag = 1; flag <= 8; flag *= 2)
            if (__syncthreads_or(flags & flag)) any |= flag;
        if (threadIdx.x == 0 && any) atomicOr(words + FLAGS, uint64(any));
        if (nans) atomicAdd(words + NANS, uint64(nans));
    }
};
