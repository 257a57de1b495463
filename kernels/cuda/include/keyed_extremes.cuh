// The least order of each group: integers that sort as elements do, as kernels/cpu/grouped/selecting.py has them.
#pragma once
#include "keyed_sums.cuh"

// Bits of an element as a signed integer.
template <class V>
__device__ int64 pattern_of(V x) {
    if constexpr (sizeof(V) == 8) {
        int64 bits;
        memcpy(&bits, &x, 8);
        return bits;
    } else if constexpr (sizeof(V) == 4) {
        int32 bits;
        memcpy(&bits, &x, 4);
        return bits;
    } else if constexpr (sizeof(V) == 2) {
        int16 bits;
        memcpy(&bits, &x, 2);
        return bits;
    } else {
        int8 bits;
        memcpy(&bits, &x, 1);
        return bits;
    }
}

// `best` starts with the greatest order. Once it is low, few elements are lower, and the others only read.
template <class K, class V, class Order>
__device__ void find_least(const K* keys, const V* values, uint64 count, const Codes<K>& codes, int64 flip, int64 of_nan, bool omit_nan,
                           Order* best) {
    for (uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += uint64(gridDim.x) * blockDim.x) {
        uint32 code;
        const V x = values[at];
        if (!codes.of(keys[at], code) || (omit_nan && is_nan(widen(x)))) continue;
        int64 order = pattern_of(x);
        if constexpr (is_real<V>) order ^= order >> 63 & int64(Bits<V>(~SIGN<V>));
        order = is_nan(widen(x)) ? of_nan : order ^ flip;
        if (Order(order) < best[code]) atomicMin(best + code, Order(order));
    }
}
