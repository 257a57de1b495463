// A reduction leaves four 64-bit words for the host, which kernels/cuda/strategies/partial_results.py reads.
#pragma once
#include "elements.cuh"

constexpr int OUTCOME_WORDS = 4;

__device__ inline void store_real(uint64* words, double first, double second = 0.0) {
    words[0] = __double_as_longlong(first);
    words[1] = __double_as_longlong(second);
}

// A two's-complement integer of 256 bits, lowest word first.
__device__ inline void store_integer(uint64* words, int128 value) {
    words[0] = uint64(value);
    words[1] = uint64(value >> 64);
    words[2] = words[3] = value < 0 ? ~0ull : 0ull;
}
