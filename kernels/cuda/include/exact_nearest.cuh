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

// ±(high · 2^64 + low) · 2^unit, and whether anything was cut off, rounded once to a format of `precision` bits whose numbers
// are multiples of 2^lowest; the result is a double. With `sticky` there are more than precision + 1 bits.
__device__ inline double nearest(uint128 number, bool sticky, int unit, int precision, int lowest, int highest) {
    if (number == 0) return 0;  // with nothing cut off
    const uint64 upper = uint64(number >> 64);
    const int length = upper ? 128 - __clzll(int64(upper)) : 64 - __clzll(int64(uint64(number)));
    int drop = length - precision > lowest - unit ? length - precision : lowest - unit;
    uint64 kept = uint64(number);
    if (drop > length) return 0;  // less than half of the least
    if (drop > 0) {
        const uint128 half = uint128(1) << (drop - 1), below = number & (half - 1);
        kept = drop < 128 ? uint64(number >> drop) : 0;
        if ((number & half) && (below || sticky || kept & 1)) ++kept;
    } else {
        drop = 0;
    }
    const int exponent = unit + drop, bits = 64 - __clzll(int64(kept));
    if (kept && bits + exponent > highest) return __longlong_as_double(0x7ff0000000000000ll);
    // in two steps, each of which is exact
    const int some = exponent < -900 ? exponent + 200 : exponent;
    const double scaled = double(kept) * __longlong_as_double(int64(some + 1023) << 52);
    return some == exponent ? scaled : scaled * 0x1p-200;
}
