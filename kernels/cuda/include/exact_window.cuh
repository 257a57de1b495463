// Exact sums in float64 arithmetic: L running totals, each rounding to a multiple of its own unit.
//
// Level 1 starts at the bias 1.5 · 2^(52+u) and stays in [2^(52+u), 2^(53+u)], where doubles lie 2^u apart. Adding x to it
// rounds x to a multiple of 2^u; the remainder, at most 2^(u−1), is exact (Dekker's Fast2Sum: the total is larger than x)
// and goes to level 2, whose unit is 2^40 smaller, and so on. The last level has no bias and must never round.
// With at most 2^11 additions a level between flushes that holds while
//   top:     |x| < 2^(u+39), for then a biased total moves less than 2^51 units from its start: 2^11 (2^39 + 1/2) at
//            level 1, and at the others, with unit v, 2^11 remainders of at most 2^(v+40−1) and their roundings;
//   bottom:  x is a multiple of 2^(v−42), v the unit of the last level but one, for then the last total is a multiple
//            of 2^(v−42) and at most 2^11 · 2^(v−1) = 2^52 of it.
// A window is the range of exponents for which both hold.
//
// Totals of fixed exponent ranges are Malcolm's (1971) and Demmel and Hida's (2003); the biased extraction is Rump, Ogita
// and Oishi's (AccSum, 2008) and Demmel and Nguyen's (2013); the two-product Dekker's (1971), by FMA.
#pragma once
#include "exact_digits.cuh"

constexpr int ADDITIONS = 1 << 11;  // a level between flushes
constexpr int SPACING = 40;

// Exponents, both included.
struct Range {
    int lowest, highest;

    __device__ bool holds(const Range& other) const { return other.lowest >= lowest && other.highest <= highest; }
    __device__ int length() const { return highest - lowest; }
};

// A term t of exponent e is a multiple of 2^(e − BITS) and |t| < 2^(e + SLACK).
template <int L, int BITS, int SLACK>
struct Window {
    static constexpr int LAST = SPACING * (L > 2 ? L - 2 : 0);  // from the first unit to that of the last level but one
    static constexpr int LOWEST_UNIT = -1074 + LAST, HIGHEST_UNIT = 970;  // biases are normal, and finite

    double total[L];
    int unit;

    // The unit for terms up to that exponent, or the nearest there is.
    static __device__ int unit_for(int highest) {
        const int wanted = highest + SLACK - 39;
        return wanted < LOWEST_UNIT ? LOWEST_UNIT : wanted > HIGHEST_UNIT ? HIGHEST_UNIT : wanted;
    }
    static __device__ Range range(int unit) { return {unit - LAST - 42 + BITS, unit + 39 - SLACK}; }

    static __device__ double bias(int unit, int level) {
        return __longlong_as_double(int64(uint64(unit - level * SPACING + 52 + 1023) << 52 | 0x8000000000000ull));
    }

    __device__ void start(int at) {
        unit = at;
#pragma unroll
        for (int level = 0; level < L; ++level) total[level] = level < L - 1 ? bias(unit, level) : 0;
    }

    template <class D>
    __device__ void flush(D& digits) {
        digits.reserve(L);
#pragma unroll
        for (int level = 0; level < L; ++level) {
            const double sum = level < L - 1 ? total[level] - bias(unit, level) : total[level];  // exact
            if (sum != 0) digits.add(sum);
        }
        start(unit);
    }

    // Rounds x into a level; returns the remainder.
    __device__ double extract(int level, double x) {
        const double sum = total[level] + x, kept = sum - total[level];
        total[level] = sum;
        return x - kept;
    }

    __device__ void add(double x) {
#pragma unroll
        for (int level = 0; level < L - 1; ++level) x = extract(level, x);
        total[L - 1] += x;
    }

    // x · y where it is a double: fma saves making it.
    __device__ void add_product(double x, double y) {
        const double sum = __fma_rn(x, y, total[0]);
        double rest = __fma_rn(x, y, total[0] - sum);
        total[0] = sum;
#pragma unroll
        for (int level = 1; level < L - 1; ++level) rest = extract(level, rest);
        total[L - 1] += rest;
    }

    // x · y of 106 bits as product + error (two-product). The product has 53: with BITS = 104 its last place is above the
    // unit of level 3, which takes what is left of it whole. The error is below 2^(u+39−53), so level 1 has no part of it.
    // Levels 2 and 3 get two additions.
    __device__ void add_wide_product(double x, double y) {
        static_assert(L == 4 && BITS == 104);
        const double product = x * y, error = __fma_rn(x, y, -product);
        total[2] += extract(1, extract(0, product));
        total[3] += extract(2, extract(1, error));
    }
};
