// The float formats as bits, as far as exact sums need them.
#pragma once
#include "elements.cuh"

// PRECISION counts the bits of a significand, the hidden one included; every finite value is a multiple of 2^LOWEST and
// below 2^HIGHEST in magnitude (IEEE 754-2019, table 3.5).
template <class T>
struct Format;
template <>
struct Format<float16> {
    using Bits = uint16;
    static constexpr int PRECISION = 11, LOWEST = -24, HIGHEST = 16;
};
template <>
struct Format<bfloat16> {
    using Bits = uint16;
    static constexpr int PRECISION = 8, LOWEST = -133, HIGHEST = 128;
};
template <>
struct Format<float32> {
    using Bits = uint32;
    static constexpr int PRECISION = 24, LOWEST = -149, HIGHEST = 128;
};
template <>
struct Format<float64> {
    using Bits = uint64;
    static constexpr int PRECISION = 53, LOWEST = -1074, HIGHEST = 1024;
};

template <class T>
using Bits = typename Format<T>::Bits;

template <class T>
__device__ Bits<T> bits_of(T x) {
    Bits<T> bits;
    memcpy(&bits, &x, sizeof(T));
    return bits;
}

template <class T>
constexpr Bits<T> SIGN = Bits<T>(Bits<T>(1) << (8 * sizeof(T) - 1));  // alone: −0
template <class T>
constexpr Bits<T> ENDLESS = Bits<T>(SIGN<T> - (Bits<T>(1) << (Format<T>::PRECISION - 1)));  // alone: +∞; more: NaN

// The kinds of terms that a sum may have.
enum Terms { VALUES, MAGNITUDES, SQUARES, MOMENTS };
