// The value of a reduction from its total (exact_total.cuh), rounded once by one thread: a sum, a mean, a root, or the variance
// or the deviation from the totals of values and of squares. kernels/exact/finish.py says the same in Python's integers.
//
// Numbers are digits of 32 bits, of which only those between the lowest and the highest that are not 0 are looked at: an
// array of like exponents has about ten. A quotient is cut off behind 160 bits, and a root behind 63; what was cut off only
// matters by whether it is 0.
#pragma once
#include "exact_format.cuh"
#include "exact_nearest.cuh"
#include "exact_total.cuh"

// ±Σ digits[k] · 2^(32 · k) · 2^unit for the places low ≤ k ≤ high, with something cut off below if `sticky`.
struct Number {
    uint32* digits;
    int low, high, unit;
    bool negative = false, sticky = false;

    __device__ void trim() {
        while (high >= low && digits[high] == 0) --high;
    }
    __device__ bool is_zero() const { return high < low; }
};

// What the last block of a launch works with, in its shared memory. VALUES are the digits of one sum of values, PRODUCTS those of
// a sum of products, and BELOW is how many digits a quotient may have beneath the unit.
struct FinishRoom {
    static constexpr int VALUES = Total::OF_VALUES - Total::DIGITS, PRODUCTS = 138, BELOW = 8, ABOVE = 4;
    static constexpr int SMALL = VALUES + BELOW + ABOVE, LARGE = PRODUCTS + BELOW + 3 * ABOVE;

    // Bytes that totals of these terms take.
    static __device__ constexpr int bytes(int limbs, bool moments, bool products) {
        return 8 * limbs + 4 * (moments ? 2 * LARGE + SMALL : products ? LARGE : SMALL);
    }
};

// The places of the lowest and the highest limb that is not 0; 0 and −1 where all are.
struct Ends {
    int low, high;
};

// The limbs of a sum between their ends as a number in `digits`, which must have ABOVE digits more than there are limbs.
__device__ inline Number number_of(const int64* limbs, Ends ends, int unit, uint32* digits) {
    const int low = ends.low, high = ends.high;
    Number number{digits, low, high + 2, unit};
    if (low > high) return Number{digits, 0, -1, unit};
    int64 carried = 0;
    for (int k = low; k <= high; ++k) {
        const int128 sum = int128(limbs[k]) + carried;
        digits[k] = uint32(uint64(sum));
        carried = int64(sum >> 32);
    }
    digits[high + 1] = uint32(uint64(carried));
    digits[high + 2] = uint32(uint64(carried >> 32));
    if (carried < 0) {
        number.negative = true;
        bool carry = true;
        for (int k = low; k <= high + 2; ++k) {
            digits[k] = ~digits[k] + uint32(carry);
            carry = carry && digits[k] == 0;
        }
    }
    number.trim();
    return number;
}

// A divisor by which digit after digit is divided. A division of integers takes hundreds of cycles; one below 2^32 is done by
// its reciprocal (N. Möller and T. Granlund, Improved division by invariant integers, IEEE Trans. Computers 60, 2011,
// algorithm 4). For that the divisor and what remains are moved to the left by `shift`, until the divisor has 32 bits.
struct Divisor {
    uint64 value;
    uint32 moved = 0, reciprocal = 0;
    int shift = 0;

    __device__ explicit Divisor(uint64 value) : value(value) {
        if (value >> 32) return;
        shift = __clz(int(uint32(value)));
        moved = uint32(value) << shift;
        reciprocal = uint32(~uint64(0) / moved - (uint64(1) << 32));
    }

    // The next digit of a quotient. `remains` is 0 first, and then what remained; it is 0 again where nothing does.
    __device__ uint32 quotient(uint64& remains, uint32 digit) const {
        if (value >> 32) {
            const uint128 part = uint128(remains) << 32 | digit;
            remains = uint64(part % value);
            return uint32(part / value);
        }
        const uint64 wide = uint64(digit) << shift;
        const uint32 high = uint32(remains) + uint32(wide >> 32), low = uint32(wide);
        const uint64 about = uint64(reciprocal) * high + (uint64(high) << 32 | low);
        uint32 quotient = uint32(about >> 32) + 1, left = low - quotient * moved;
        if (left > uint32(about)) {
            --quotient;
            left += moved;
        }
        if (left >= moved) {
            ++quotient;
            left -= moved;
        }
        remains = left;
        return quotient;
    }
};

// ⌊number / divisor⌋ with `wanted` digits behind its first one, at places from `least` on. There are BELOW digits more beneath
// the number's own.
__device__ inline void divide(Number& number, uint64 divisor, int least, int wanted) {
    if (divisor == 1 || number.is_zero()) return;
    const Divisor by(divisor);
    uint64 remains = 0;
    int top = least - 1, at = number.high;
    for (; at >= least; --at) {
        const uint32 quotient = by.quotient(remains, at >= number.low ? number.digits[at] : 0);
        number.digits[at] = quotient;
        if (quotient && top < least) top = at;
        if (top >= least && at <= top - wanted) break;
        if (remains == 0 && at <= number.low) break;
    }
    const int last = at < least ? least : at;
    for (int k = number.low; k < last; ++k) number.sticky = number.sticky || number.digits[k] != 0;
    number.sticky = number.sticky || remains != 0;
    number.low = last;
    number.trim();
}

// The 128 highest bits of a number, the first of which is 1, and the exponent of the last.
struct Leading {
    uint128 bits;
    int exponent;
    bool sticky;
};
__device__ inline Leading leading(const Number& number) {
    const auto digit = [&](int at) { return at >= number.low && at <= number.high ? number.digits[at] : 0u; };
    const int top = number.high, shift = __clz(int(digit(top)));
    uint128 bits = 0;
    for (int k = 0; k < 4; ++k) bits = bits << 32 | digit(top - k);
    const uint64 rest = uint64(digit(top - 4)) << shift;
    bool sticky = number.sticky || uint32(rest) != 0;
    for (int k = number.low; k < top - 4; ++k) sticky = sticky || number.digits[k] != 0;
    return {bits << shift | uint128(rest >> 32), number.unit + 32 * (top - 3) - shift, sticky};
}

// ⌊√bits⌋ of 126 bits or more.
__device__ inline uint64 root_of(uint128 bits) {
    const double about = sqrt(double(uint64(bits >> 64)) * 0x1p64 + double(uint64(bits)));
    uint64 root = about < 0x1.fffffffffffffp63 ? uint64(about) : 0xfffffffffffff800ull;
    // an error of 2^11 leaves one of 2^76; the next is below 2
    const int128 left = int128(bits - uint128(root) * root);
    const int64 step = int64(double(left) / (2 * double(root)));
    root = step > 0 && uint64(step) > ~root ? ~0ull : root + step;
    while (uint128(root) * root > bits) --root;
    while (root != ~0ull && uint128(root + 1) * (root + 1) <= bits) ++root;
    return root;
}

// √number.
__device__ inline Leading root_of(const Number& number) {
    Leading x = leading(number);
    if (x.exponent % 2) {
        x.sticky = x.sticky || uint64(x.bits) % 2;
        x.bits >>= 1;
        ++x.exponent;
    }
    const uint64 root = root_of(x.bits);
    return {root, x.exponent / 2, x.sticky || uint128(root) * root != x.bits};
}

template <class Out>
__device__ void endless(Out& out, bool negative) {
    set_bits(out, uint64(ENDLESS<Out>) | (negative ? uint64(SIGN<Out>) : 0));
}
template <class Out>
__device__ void not_a_number(Out& out) {
    set_bits(out, uint64(ENDLESS<Out>) | uint64(1) << (Format<Out>::PRECISION - 2));
}
template <class Out>
__device__ void zero(Out& out, bool negative) {
    set_bits(out, negative ? uint64(SIGN<Out>) : 0);
}

template <class Out>
__device__ void rounded(Out& out, const Leading& x, bool negative) {
    using F = Format<Out>;
    const double value = nearest(x.bits, x.sticky, x.exponent, F::PRECISION, F::LOWEST, F::HIGHEST);
    if (isinf(value)) return endless(out, negative);
    round_to(out, negative ? -value : value);
}

// n · squares − values², where both numbers have the unit of a product, at places from 0 on: its places, and no digit yet.
__device__ inline Number spread_of(const Number& values, const Number& squares, uint32* digits) {
    const int low = values.is_zero() ? squares.low : 2 * values.low < squares.low ? 2 * values.low : squares.low;
    const int above = squares.high + 3, twice = 2 * values.high + 2;
    return Number{digits, low, above > twice ? above : twice, squares.unit};
}

// The same with its digits.
__device__ inline Number spread(uint64 count, const Number& values, const Number& squares, uint32* digits) {
    Number found = spread_of(values, squares, digits);
    const int above = squares.high + 3;
    for (int k = found.low; k <= found.high; ++k) digits[k] = 0;
    uint64 carried = 0;
    for (int k = squares.low; k <= above; ++k) {
        const uint128 part = uint128(k <= squares.high ? squares.digits[k] : 0) * count + carried;
        digits[k] = uint32(uint64(part));
        carried = uint64(part >> 32);
    }
    int64 borrowed = 0;
    uint128 column = 0;
    for (int k = values.is_zero() ? found.high + 1 : 2 * values.low; k <= found.high; ++k) {
        const int from = k - values.high > values.low ? k - values.high : values.low;
        const int to = k - values.low < values.high ? k - values.low : values.high;
        for (int i = from; i <= to; ++i) column += uint64(values.digits[i]) * values.digits[k - i];
        const int64 left = int64(digits[k]) - int64(uint32(uint64(column))) + borrowed;
        digits[k] = uint32(uint64(left));
        borrowed = left >> 32;
        column >>= 32;
    }
    found.trim();
    return found;
}

// Whether the value of `count` terms is no number, or infinite, which is then written: `limbs` is a total, with its flags.
template <class Out>
__device__ bool finish_special(Out& out, const int64* limbs, uint64 finish, uint64 count, uint64 ddof) {
    const int64* const flags = limbs + Total::FLAGS;
    const bool positive = flags[1] != 0, below = flags[2] != 0;
    const bool undefined = finish == MEAN ? count == 0 : finish >= VARIANCE && count <= ddof;
    if (undefined || limbs[Total::NANS] || flags[0] || (positive && below)) {
        not_a_number(out);
        return true;
    }
    if (!positive && !below) return false;
    if (finish >= VARIANCE)
        not_a_number(out);
    else
        endless(out, below);
    return true;
}

// The variance or the deviation of `count` terms, whose `spread` is n · squares − values².
template <class Out>
__device__ void finish_spread(Out& out, Number number, uint64 finish, uint64 count, uint64 ddof) {
    if (count >> 16) {
        divide(number, count, -FinishRoom::BELOW, 7);
        divide(number, count - ddof, number.sticky ? number.low : -FinishRoom::BELOW, 7);  // not below what was cut off
    } else {
        divide(number, count * (count - ddof), -FinishRoom::BELOW, 7);
    }
    if (number.is_zero()) return zero(out, number.sticky && number.negative);
    rounded(out, finish == DEVIATION ? root_of(number) : leading(number), number.negative);
}

// The value of `count` terms. `ends` are those of the limbs of each sum behind its DIGITS. `limbs` is a total, with BOTH that of
// values and behind it that of squares; `room` is as FinishRoom says. Terms of a SIGNED sum may be −0.
template <class Out, bool BOTH, bool PRODUCTS, bool SIGNED>
__device__ void finish_total(Out& out, const int64* limbs, const Ends (&ends)[2], uint64 finish, uint64 count, uint64 ddof,
                             uint32* room) {
    using R = FinishRoom;
    if (finish_special(out, limbs, finish, count, ddof)) return;
    if constexpr (BOTH) {
        const Number values = number_of(limbs + Total::DIGITS, ends[0], -1074, room);
        const Number squares = number_of(limbs + Total::OF_VALUES + Total::DIGITS, ends[1], -2148, room + R::SMALL);
        finish_spread(out, spread(count, values, squares, room + R::SMALL + R::LARGE + R::BELOW), finish, count, ddof);
    } else {
        Number number = number_of(limbs + Total::DIGITS, ends[0], PRODUCTS ? -2148 : -1074, room + R::BELOW);
        if (finish == MEAN) divide(number, count, -R::BELOW, 5);
        if (number.is_zero()) {
            const bool all_negative = SIGNED && count && !limbs[Total::FLAGS + 3];
            return zero(out, number.sticky ? number.negative : all_negative);
        }
        rounded(out, finish == ROOT ? root_of(number) : leading(number), number.negative);
    }
}
