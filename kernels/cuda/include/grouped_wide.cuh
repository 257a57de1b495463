// Values whose elements no window of grouped_window.cuh holds, or that are too long for one warp: each is added up by blocks
// as a whole array is, in buckets or windows with digits, to a total of its own (exact_total.cuh), which is rounded here.
#pragma once
#include "exact_buckets.cuh"
#include "exact_members.cuh"
#include "exact_window_sum.cuh"
#include "grouped_window.cuh"

template <class T, int THREADS>
struct WideSumOf {
    using Type = WindowSum<T, VALUES, ValueTerms<T, THREADS, false>>;
};
template <int THREADS>
struct WideSumOf<float32, THREADS> {
    using Type = BucketSum<float32, VALUES, THREADS>;
};
template <class T, int THREADS>
using WideSum = typename WideSumOf<T, THREADS>::Type;

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

// The sum in a total, divided by `divisor` unless that is 0, and rounded once.
template <class Out>
__device__ Out round_total(const uint64* words, uint64 divisor, bool omit_nan) {
    const uint64* const flags = words + Total::FLAGS;
    const bool positive = flags[1], negative_infinity = flags[2];
    if ((words[Total::NANS] && !omit_nan) || flags[0] || (positive && negative_infinity)) return nan_of<Out>();
    if (positive || negative_infinity) return Out((positive ? 1 : -1) * __longlong_as_double(0x7ff0000000000000ll));
    constexpr int GIVEN = Total::OF_VALUES - Total::DIGITS, BELOW = 4, SIZE = BELOW + GIVEN + 1;
    uint32 digits[SIZE] = {};
    int64 carried = 0;
    for (int k = 0; k < GIVEN; ++k) {
        const int64 digit = int64(words[Total::DIGITS + k]);
        const int128 sum = int128(digit) + carried;
        digits[BELOW + k] = uint32(uint64(sum));
        carried = int64(sum >> 32);
    }
    digits[SIZE - 1] = uint32(uint64(carried));
    const bool negative = carried < 0;
    if (negative) {
        bool carry = true;
        for (int k = 0; k < SIZE; ++k) {
            digits[k] = ~digits[k] + uint32(carry);
            carry = carry && digits[k] == 0;
        }
    }
    uint64 remainder = 0;
    if (divisor > 1) {
        for (int k = SIZE - 1; k >= 0; --k) {
            const uint128 part = uint128(remainder) << 32 | digits[k];
            digits[k] = uint32(part / divisor);
            remainder = uint64(part % divisor);
        }
    }
    int top = SIZE - 1;
    while (top >= 0 && digits[top] == 0) --top;
    if (top < 0) return Out(flags[3] || remainder ? (negative ? -0.0 : 0.0) : -0.0);
    bool sticky = remainder != 0;
    for (int k = 0; k < top - 3; ++k) sticky = sticky || digits[k] != 0;
    uint128 number = 0;
    for (int k = 0; k < 4; ++k) number = number << 32 | (top - k >= 0 ? digits[top - k] : 0);
    using F = Format<Out>;
    const double rounded = nearest(number, sticky, -1074 + 32 * (top - 3 - BELOW), F::PRECISION, F::LOWEST, F::HIGHEST);
    return Out(negative ? -rounded : rounded);
}

// values[value] of a total, which is cleared for the next launch, and how many of its elements were left out in omitted[value].
template <class Out>
__device__ void round_listed(uint64* words, const Members& of, uint64 value, Out* values, uint32* omitted, bool mean,
                             bool omit_nan) {
    uint64 begin, members;
    of.of(value, begin, members);
    if (omit_nan) {
        members -= words[Total::NANS];
        omitted[value] = uint32(words[Total::NANS]);
    }
    values[value] = members ? round_total<Out>(words, mean ? members : 0, omit_nan) : Out(0);
    for (int k = 0; k < Total::OF_VALUES; ++k) words[k] = 0;
}
