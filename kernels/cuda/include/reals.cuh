// Sums and products of floating-point numbers, rounded at every step.
#pragma once
#include "outcome.cuh"

template <class F>
struct Plain {  // recursive summation
    using Real = F;
    F total;
    // −0 is the neutral element of IEEE addition: −0 + x is x for every x, −0 itself included.
    static __device__ Plain identity() { return {F(-0.0)}; }
    __device__ void add(F x) { total += x; }
    __device__ void add_square(F x) { total += x * x; }
    __device__ void merge(const Plain& other) { total += other.total; }
    __device__ void store(uint64* words) const { store_real(words, total); }
};

__device__ inline int exponent_field(float x) { return int(__float_as_uint(x) >> 23 & 0xff); }
__device__ inline int exponent_field(double x) { return int(__double_as_longlong(x) >> 52 & 0x7ff); }
__device__ inline float with_exponent_zero(float x) {
    return __uint_as_float((__float_as_uint(x) & 0x807fffffu) | 0x3f800000u);
}
__device__ inline double with_exponent_zero(double x) {
    return __longlong_as_double((__double_as_longlong(x) & 0x800fffffffffffffll) | 0x3ff0000000000000ll);
}

// A product as significand · 2^exponent, so that no partial product over- or underflows where the whole does not.
// Packed, so that no byte of it is ever read unwritten when it moves word by word.
template <class F>
struct __attribute__((packed, aligned(4))) Product {
    F significand;  // magnitude in [1, 2), or zero, infinite, NaN
    int64 exponent;

    static __device__ Product identity() { return {F(1), 0}; }

    __device__ void add(F x) {
        constexpr int TOP = sizeof(F) == 4 ? 0xff : 0x7ff, BIAS = TOP >> 1;
        if (exponent_field(x) == 0) {  // zero or subnormal
            x *= sizeof(F) == 4 ? F(0x1p64) : F(0x1p128);
            exponent -= sizeof(F) == 4 ? 64 : 128;
        }
        const int field = exponent_field(x);
        if (field == 0 || field == TOP) {
            significand *= x;  // zero, infinite or NaN: the exponent no longer matters
            return;
        }
        merge({with_exponent_zero(x), field - BIAS});
    }

    __device__ void merge(const Product& other) {
        significand *= other.significand;
        exponent += other.exponent;
        if (significand >= F(2) || significand <= F(-2)) {  // below 4
            significand *= F(0.5);
            ++exponent;
        }
    }

    __device__ void store(uint64* words) const {
        store_real(words, significand);
        words[1] = uint64(exponent);
    }
};
