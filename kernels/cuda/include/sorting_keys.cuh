// Keys of elements: unsigned integers of the elements' width that sort as the elements do, −∞ … −0, +0 … ∞, and NaN last.
#pragma once
#include "elements.cuh"

template <int BYTES>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
    using Type = uint8;
};
template <>
struct UnsignedOf<2> {
    using Type = uint16;
};
template <>
struct UnsignedOf<4> {
    using Type = uint32;
};
template <>
struct UnsignedOf<8> {
    using Type = uint64;
};

template <class T>
using SortingKey = typename UnsignedOf<sizeof(T)>::Type;

template <class T>
__device__ SortingKey<T> sorting_key(T x) {
    using Key = SortingKey<T>;
    constexpr Key sign = Key(Key(1) << (8 * sizeof(T) - 1));
    Key bits;
    memcpy(&bits, &x, sizeof(T));
    if constexpr (is_real<T>) {
        constexpr int fraction = Format<T>::PRECISION - 1;
        constexpr Key infinity = Key(Key(sign - 1) >> fraction << fraction);
        if (Key(bits & ~sign) > infinity) return Key(~Key(0));
        return bits & sign ? Key(~bits) : Key(bits | sign);
    } else if constexpr (T(-1) < T(0)) {
        return Key(bits ^ sign);
    } else {
        return bits;
    }
}
template <>
__device__ inline uint8 sorting_key(boolean x) { return x.byte != 0; }
