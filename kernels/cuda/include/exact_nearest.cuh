// One rounding of a few doubles whose exact sum, or the quotient of that sum, is the value of a reduction.
//
// Rounding to odd keeps whether anything was cut off: a number that is rounded to odd with two bits more than the result, and
// then to nearest, is rounded correctly (S. Boldo and G. Melquiond, Emulation of a FMA and correctly rounded sums: proved
// algorithms using rounding to odd, IEEE Trans. Computers 57, 2008; the sum of three doubles is theirs, too).
#pragma once
#include "elements.cuh"

struct DoublePair {  // high + low, of which high is the nearest double
    double high, low;
};

// Knuth's TwoSum: a + b, where nothing overflows.
__device__ inline DoublePair two_sum(double a, double b) {
    const double sum = a + b, part = sum - a;
    return {sum, (a - (sum - part)) + (b - part)};
}

__device__ inline double to_odd(const DoublePair& x) {
    int64 bits = __double_as_longlong(x.high);
    if (x.low != 0 && !(bits & 1)) bits += (x.low > 0) == (bits >= 0) ? 1 : -1;
    return __longlong_as_double(bits);
}

// The sum of the levels of a window. `slip` bounds how far the sum lies from high + low, on the side that low's last place
// tells; it is 0 but for three levels that three doubles are needed for.
struct LevelSum {
    DoublePair sum;
    double slip;
};
__device__ inline LevelSum sum_of(const double (&level)[2]) { return {two_sum(level[0], level[1]), 0}; }
__device__ inline LevelSum sum_of(const double (&level)[3]) {
    const DoublePair lower = two_sum(level[1], level[2]), upper = two_sum(level[0], lower.high);
    const DoublePair rest = two_sum(upper.low, lower.low);
    const double odd = to_odd(rest);
    return {two_sum(upper.high, odd), rest.low != 0 ? fabs(odd) * 0x1p-51 : 0};
}

// More levels as an expansion whose parts do not overlap (J. R. Shewchuk, Adaptive precision floating-point arithmetic and fast
// robust geometric predicates, Discrete & Computational Geometry 18, 1997: grow-expansion and compress).
__device__ inline LevelSum sum_of(const double (&level)[5]) {
    double parts[5];
#pragma unroll
    for (int k = 0; k < 5; ++k) {
        double carried = level[4 - k];
#pragma unroll
        for (int at = 0; at < k; ++at) {
            const DoublePair sum = two_sum(carried, parts[at]);
            parts[at] = sum.low;
            carried = sum.high;
        }
        parts[k] = carried;
    }
    double found[3] = {};
    int count = 0;
    double top = parts[4];
#pragma unroll
    for (int at = 3; at >= 0; --at) {
        const DoublePair sum = two_sum(top, parts[at]);
        top = sum.high;
        if (sum.low == 0) continue;
        if (count == 0) found[0] = sum.high;
        if (count == 1) found[1] = sum.high;
        if (count == 2) found[2] = sum.high;
        ++count;
        top = sum.low;
    }
    if (count == 0) return {{top, 0}, 0};
    if (count == 1) return {two_sum(found[0], top), 0};
    const double odd = to_odd({found[1], count == 2 ? top : found[2]});
    return {two_sum(found[0], odd), fabs(odd) * 0x1p-51};
}

__device__ inline void round_pair(float64& out, const DoublePair& x) { out = two_sum(x.high, x.low).high; }
__device__ inline void round_pair(float32& out, const DoublePair& x) { out = float(to_odd(two_sum(x.high, x.low))); }

// Rounds a sum; low's last place is odd if anything was cut off.
template <class Out>
__device__ bool round_sum(Out& out, const LevelSum& x) {
    round_pair(out, x.sum);
    return true;
}

// Rounds a sum divided by `count`; false where that is not sure, because the quotient lies too near to where roundings part,
// or is so small that its remainders would not be exact.
template <class Out>
__device__ bool round_quotient(Out& out, const LevelSum& x, double count) {
    const double high = x.sum.high;
    if (fabs(high) < 0x1p-700 || fabs(high) > 0x1p+1000) return false;
    const double first = high / count;
    const DoublePair rest = two_sum(__fma_rn(-first, count, high), x.sum.low);
    if (rest.high != 0 && fabs(rest.high) < 0x1p-900) return false;
    const double second = rest.high / count;
    const double left = __fma_rn(-second, count, rest.high) + rest.low;
    const DoublePair quotient = two_sum(first, second);
    round_pair(out, quotient);
    if (left == 0 && x.slip == 0) return true;
    // No less than a place of the lower double: where that is a tie, less would change nothing.
    const double away = (fabs(left) + x.slip) / count * 2 + fabs(quotient.low) * 0x1p-50;
    Out below, above;
    round_pair(below, {quotient.high, quotient.low - away});
    round_pair(above, {quotient.high, quotient.low + away});
    return below == above;
}
