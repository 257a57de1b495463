// Floats as bits, as far as exact sums need them.
#pragma once
#include "elements.cuh"

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
enum Terms { VALUES, MAGNITUDES, SQUARES, MOMENTS, PRODUCTS };

// What becomes of a sum, by the numbers of kernels/cuda/exact/finishing.py.
enum Finish : uint64 { SUM, MEAN, ROOT, VARIANCE, DEVIATION };
