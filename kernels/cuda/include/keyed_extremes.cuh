// The least order of each group: integers that sort as elements do, as kernels/aggregates/keys.py has them.
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

// The order of an element; with `equal_zeros` −0 and +0 have the same one.
template <class V>
__device__ int64 order_of(V x, int64 flip, int64 of_nan, bool equal_zeros) {
    int64 order = pattern_of(x);
    if constexpr (is_real<V>) {
        order ^= order >> 63 & int64(Bits<V>(~SIGN<V>));
        if (equal_zeros && x == 0) order = 0;
    }
    return is_nan(widen(x)) ? of_nan : order ^ flip;
}

// `best` starts with the greatest order. Once it is low, few elements are lower, and the others only read.
template <class K, class V, class Order>
__device__ void find_least(const K* keys, const V* values, uint64 count, const Codes<K>& codes, int64 flip, int64 of_nan, bool equal_zeros,
                           bool omit_nan, Order* best) {
    for (uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += uint64(gridDim.x) * blockDim.x) {
        uint32 code;
        const V x = values[at];
        if (!codes.of(keys[at], code) || (omit_nan && is_nan(widen(x)))) continue;
        const Order order = Order(order_of(x, flip, of_nan, equal_zeros));
        if (order < best[code]) atomicMin(best + code, order);
    }
}

// The first row of each group that has its least order; `rows` starts with the greatest number.
template <class K, class V, class Order>
__device__ void find_first(const K* keys, const V* values, uint64 count, const Codes<K>& codes, int64 flip, int64 of_nan, bool equal_zeros,
                           bool omit_nan, const Order* best, uint64* rows) {
    for (uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += uint64(gridDim.x) * blockDim.x) {
        uint32 code;
        const V x = values[at];
        if (!codes.of(keys[at], code) || (omit_nan && is_nan(widen(x)))) continue;
        if (Order(order_of(x, flip, of_nan, equal_zeros)) == best[code] && at < rows[code]) atomicMin(rows + code, at);
    }
}
