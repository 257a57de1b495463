// Elements as integers of levels, for sums by key: level k counts multiples of 2^(unit − APART · k), and level 0 is the highest.
//
// Exactness: for |d| < 2^(u + 51) the sum d + 1.5 · 2^(52 + u) is a multiple of 2^u whose bits differ from those of 1.5 · 2^(52 + u)
// by the nearest integer to d / 2^u. What is left of d is at most 2^(u − 1) in magnitude, and is a double, because it is a multiple
// of the last place of d. So an element is the sum of its levels and of a rest, which is 0 for nearly all elements.
#pragma once
#include "exact_format.cuh"

constexpr int TOP_BITS = 42;  // an element is below 2^TOP_BITS units of level 0

__device__ inline double power_of_two(int exponent) { return __longlong_as_double(int64(exponent + 1023) << 52); }

template <class V, int LEVELS, bool REAL = is_real<V>>
struct LevelsOf {  // floats
    static constexpr int APART = 40;
    double limit, anchors[LEVELS + 1];

    __device__ explicit LevelsOf(int unit) : limit(power_of_two(unit + TOP_BITS)) {
#pragma unroll
        for (int k = 0; k <= LEVELS; ++k) anchors[k] = 1.5 * power_of_two(unit - APART * k + 52);
    }

    __device__ static int64 taken(double& d, double anchor) {
        const double sum = d + anchor;
        d -= sum - anchor;
        return __double_as_longlong(sum) - __double_as_longlong(anchor);
    }

    // The levels and the rest of x; false, and zeros, if x is not finite or too large.
    __device__ bool split(V x, int64 (&parts)[LEVELS], double& rest) const {
        const double whole = widen(x);
        const bool held = fabs(whole) < limit;
        rest = held ? whole : 0;
#pragma unroll
        for (int k = 0; k < LEVELS; ++k) parts[k] = taken(rest, anchors[k]);
        return held;
    }

    __device__ static bool is_negative_zero(V x) { return bits_of(x) == SIGN<V>; }
};

template <class V, int LEVELS>
struct LevelsOf<V, LEVELS, false> {  // integers and truth values: one level of up to 32 bits, or two
    static constexpr int APART = 32;
    static_assert(LEVELS == (sizeof(V) == 8 ? 2 : 1));

    __device__ explicit LevelsOf(int) {}

    __device__ bool split(V x, int64 (&parts)[LEVELS], double& rest) const {
        const auto wide = widen(x);
        rest = 0;
        if constexpr (LEVELS == 1) {
            parts[0] = int64(wide);
        } else {
            parts[0] = int64(wide >> 32);
            parts[1] = int64(uint32(wide));
        }
        return true;
    }

    __device__ static bool is_negative_zero(V) { return false; }
};
