// Exact sums in float64 arithmetic: L running totals, each rounding to a multiple of its own unit.
//
// Level 1 starts at the bias 1.5 · 2^(52+u) and stays in [2^(52+u), 2^(53+u)], where doubles lie 2^u apart. Adding x to it
// rounds x to a multiple of 2^u; the remainder, at most 2^(u−1), is exact (Dekker's Fast2Sum: the total is larger than x)
// and goes to level 2, whose unit is 52 − N places lower, and so on. The last level has no bias and must never round.
// With fewer than 2^N additions a level between flushes that holds while
//   top:     |x| ≤ 2^(u+51−N), for then a biased total moves at most (2^N − 1) (2^(51−N) + 1/2) ≤ 2^51 units from its start.
//            A remainder of level 1, at most 2^(u−1), keeps to the same bound at level 2, and so on;
//   bottom:  x is a multiple of 2^(v+N−54), v the unit of the last level but one, for then the last total is a multiple of
//            that too, and below 2^N · 2^(v−1) = 2^53 of it. A single level stays below 2^N · 2^(u+51−N) = 2^53 · 2^(u−2).
// A window is the range of exponents for which both hold.
//
// A term that is a multiple of the unit of level D needs no level below: what the levels above leave of it is a multiple of
// that unit too (they round to coarser ones), and adding it to level D is exact. So tiles whose exponents span little are
// added to D levels only, which saves three operations an element for each of the others.
//
// Totals of fixed exponent ranges are Malcolm's (1971) and Demmel and Hida's (2003); the biased extraction is Rump, Ogita
// and Oishi's (AccSum, 2008) and Demmel and Nguyen's (2013); the two-product Dekker's (1971), by FMA.
#pragma once
#include "exact_digits.cuh"

// Exponents, both included.
struct Range {
    int lowest, highest;

    __device__ bool holds(const Range& other) const { return other.lowest >= lowest && other.highest <= highest; }
    __device__ int length() const { return highest - lowest; }
    __device__ Range operator&(const Range& other) const {
        return {lowest > other.lowest ? lowest : other.lowest, highest < other.highest ? highest : other.highest};
    }
};

// A term of exponent e is a multiple of 2^(e − BITS) and at most 2^(e + SLACK) in magnitude.
template <int L, int BITS, int SLACK, int N>
struct Window {
    static constexpr int SPACING = 52 - N, ROOM = 51 - N;
    static_assert(N <= 26, "2^51 units would not do");
    static constexpr int LAST = SPACING * (L > 2 ? L - 2 : 0);  // from the first unit to that of the last level but one
    static constexpr int LOWEST_UNIT = -1074 + LAST, HIGHEST_UNIT = 970;  // biases are normal, and finite

    double total[L];
    int unit;

    // The unit for terms up to that exponent, or the nearest there is.
    static __device__ int unit_for(int highest) {
        const int wanted = highest + SLACK - ROOM;
        return wanted < LOWEST_UNIT ? LOWEST_UNIT : wanted > HIGHEST_UNIT ? HIGHEST_UNIT : wanted;
    }
    // The exponents of terms that the first `depth` levels hold.
    static __device__ Range range(int unit, int depth = L) {
        const int bottom = depth < L ? unit - (depth - 1) * SPACING : L > 1 ? unit - LAST + N - 54 : unit - 2;
        return {bottom + BITS, unit + ROOM - SLACK};
    }

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

    template <int DEPTH = L>
    __device__ void add(double x) {
#pragma unroll
        for (int level = 0; level < DEPTH - 1; ++level) x = extract(level, x);
        total[DEPTH - 1] += x;
    }

    // x · y where it is a double: fma saves making it.
    template <int DEPTH = L>
    __device__ void add_product(double x, double y) {
        static_assert(DEPTH > 1);
        const double sum = __fma_rn(x, y, total[0]);
        double rest = __fma_rn(x, y, total[0] - sum);
        total[0] = sum;
#pragma unroll
        for (int level = 1; level < DEPTH - 1; ++level) rest = extract(level, rest);
        total[DEPTH - 1] += rest;
    }
};
