// Sums of integers, exact: each type is wide enough for any array that fits in the memory of a device (2^37 bytes).
#pragma once
#include "outcome.cuh"

struct Integer64 {  // terms below 2^20
    int64 total;
    static __device__ Integer64 identity() { return {0}; }
    __device__ void add(int64 x) { total += x; }
    __device__ void merge(const Integer64& other) { total += other.total; }
    __device__ void store(uint64* words) const { store_integer(words, total); }
};

struct Integer128 {  // terms below 2^64; two words, because an __int128 keeps the compiler from using registers
    uint64 low, high;
    static __device__ Integer128 identity() { return {0, 0}; }
    __device__ int128 total() const { return int128(uint128(high) << 64 | low); }
    template <class I>
    __device__ void add(I x) { merge({uint64(x), uint64(int128(x) >> 64)}); }
    __device__ void merge(const Integer128& other) {
        const uint128 sum = uint128(total()) + uint128(other.total());
        low = uint64(sum);
        high = uint64(sum >> 64);
    }
    __device__ void store(uint64* words) const { store_integer(words, total()); }
};

struct Integer192 {  // terms below 2^128, none negative
    uint64 low, middle, high;
    static __device__ Integer192 identity() { return {0, 0, 0}; }
    __device__ void add(uint128 x) { merge({uint64(x), uint64(x >> 64), 0}); }
    __device__ void merge(const Integer192& other) {
        uint128 column = uint128(low) + other.low;
        low = uint64(column);
        column = (column >> 64) + middle + other.middle;
        middle = uint64(column);
        high += other.high + uint64(column >> 64);
    }
    __device__ void store(uint64* words) const {
        words[0] = low;
        words[1] = middle;
        words[2] = high;
        words[3] = 0;
    }
};
