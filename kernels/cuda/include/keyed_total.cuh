// The sum in a total (exact_total.cuh), rounded by one thread: what a group by key is that no state of many groups holds.
#pragma once
#include "exact_nearest.cuh"
#include "exact_total.cuh"
#include "grouped_lanes.cuh"

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
