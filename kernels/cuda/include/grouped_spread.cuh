// The value of a reduction from its sums of grouped_squares.cuh, rounded once: a sum of squares, its root, or the variance or the
// deviation from the sums of values and of squares.
//
// A number is two doubles and how far these may be off, which is 0 where they are exact. What lies so near to where roundings part
// that the last is not sure is not rounded: such values are marked (grouped_window.cuh).
//
// Bounds: 2^L threads with fewer than 2^N terms below 2^t each leave lower doubles of at most 2^(t+2N−52) each. Adding up the threads
// leaves at most 2^L times the last place of the sum, 2^(t+N+2L−53). So all lower sums are together at most 2^(t+N+L+M−51), with M the
// larger of N and L. They are exact if that is no more than 2^53 of the last place of any term. Otherwise each addition of a thread is
// off by 2^−53 of what the thread leaves: together by 2^(t+3N+L−105). What a thread leaves goes through fewer than 2^D sums of two up to
// the last one, so that all these sums are together at most 2^D times all lower ones. Each has two additions, which are off by 2^−53 of
// it: together by 2^(t+N+L+M+D−103).
#pragma once
#include "exact_finish.cuh"
#include "grouped_squares.cuh"

// How many terms there may be: fewer than 2^terms a thread, in 2^threads threads, each of which goes through fewer than 2^sums sums of two.
struct Counted {
    int terms, threads, sums;

    __device__ int bound() const { return terms + threads + (terms > threads ? terms : threads) - 51; }
    // `last` is the exponent of the last place of any term.
    __device__ bool exact(int term, int last) const { return term + bound() <= 53 + last; }
    __device__ double slip(int term) const {
        const int more = terms > threads ? terms : threads;
        const int larger = 2 * terms - 2 > sums + more ? 2 * terms - 2 : sums + more;
        const int exponent = term + terms + threads + larger - 102;
        return exponent < -1022 ? 0x1p-1022 : __longlong_as_double(int64(exponent + 1023) << 52);
    }
};

struct Near {
    DoublePair value;
    double away;
};

// The sum of some doubles. What the largest cancel should come first.
template <int K>
__device__ Near sum_of_terms(double (&terms)[K], double away) {
    double sums[3];
#pragma unroll
    for (int pass = 0; pass < 3; ++pass) {
        double sum = terms[0];
#pragma unroll
        for (int k = 1; k < K - pass; ++k) {
            const DoublePair next = two_sum(sum, terms[k]);
            sum = next.high;
            terms[k - 1] = next.low;
        }
        sums[pass] = sum;
    }
#pragma unroll
    for (int k = 0; k < K - 3; ++k) away += fabs(terms[k]);
    const DoublePair lower = two_sum(sums[1], sums[2]), upper = two_sum(sums[0], lower.high);
    const DoublePair rest = two_sum(upper.low, lower.low);
    return {two_sum(upper.high, rest.high), (away + fabs(rest.low)) * 1.001};
}

__device__ inline DoublePair product_of(double x, double y) {
    const double product = x * y;
    return {product, __fma_rn(x, y, -product)};
}

__device__ inline Near quotient_of(const Near& x, double divisor) {
    const double first = x.value.high / divisor;
    const DoublePair rest = two_sum(__fma_rn(-first, divisor, x.value.high), x.value.low);
    const double second = rest.high / divisor;
    const double left = __fma_rn(-second, divisor, rest.high) + rest.low;
    return {two_sum(first, second), (fabs(left) + x.away) / divisor * 2};
}

// √x of a number above 0. The root r of x's upper double leaves x − r² = 2 r c + c², and c² is below 2^−104 of x.
__device__ inline Near root_of(const Near& x) {
    const double root = sqrt(x.value.high);
    const DoublePair rest = two_sum(__fma_rn(-root, root, x.value.high), x.value.low);
    if (rest.high == 0 && x.away == 0) return {{root, 0}, 0};
    return {two_sum(root, rest.high / (2 * root)), root * 0x1p-100 + x.away / root};
}

template <class Out>
__device__ bool rounds(Out& out, const Near& x) {
    round_pair(out, x.value);
    if (x.away == 0) return true;
    const double away = x.away * 1.001 + fabs(x.value.low) * 0x1p-50;  // no less than a place of the lower double
    Out below, above;
    round_pair(below, {x.value.high, x.value.low - away});
    round_pair(above, {x.value.high, x.value.low + away});
    return below == above;
}

template <class T>
__device__ Near squares_of(const SquareParts<T>& of, double slip) {
    if constexpr (sizeof(T) == 8) {
        double terms[4] = {of.squares.upper, of.squares.lower, of.errors.upper, of.errors.lower};
        return sum_of_terms(terms, slip);
    } else {
        return {two_sum(of.squares.upper, of.squares.lower), slip};
    }
}

// n · squares − values², of which no more than 2^−98 of the first product is left out. That is enough unless they cancel.
template <class T>
__device__ Near about_spread_of(const SquareParts<T>& of, double count, const DoublePair& values, double slip) {
    DoublePair squares = two_sum(of.squares.upper, of.squares.lower);
    if constexpr (sizeof(T) == 8) {
        const DoublePair sum = two_sum(squares.high, of.errors.upper);
        squares = {sum.high, squares.low + sum.low + of.errors.lower};
    }
    const DoublePair first = product_of(count, squares.high), second = product_of(values.high, values.high);
    const double low = __fma_rn(count, squares.low, first.low) - __fma_rn(2 * values.high, values.low, second.low);
    const DoublePair difference = two_sum(first.high, -second.high);
    return {two_sum(difference.high, difference.low + low), slip + first.high * 0x1p-98};
}

// All of it.
template <class T>
__device__ Near spread_of(const SquareParts<T>& of, double count, const DoublePair& values, double slip) {
    const DoublePair high = product_of(values.high, values.high), middle = product_of(2 * values.high, values.low),
                     low = product_of(values.low, values.low);
    const DoublePair upper = product_of(count, of.squares.upper), lower = product_of(count, of.squares.lower);
    if constexpr (sizeof(T) == 8) {
        const DoublePair errors = product_of(count, of.errors.upper), least = product_of(count, of.errors.lower);
        double terms[14] = {upper.high, -high.high, lower.high, -middle.high, upper.low,   -high.low,  errors.high,
                            -low.high,  lower.low,  -middle.low, errors.low,  least.high, -low.low, least.low};
        return sum_of_terms(terms, slip);
    } else {
        double terms[10] = {upper.high, -high.high, lower.high, -middle.high, upper.low,
                            -high.low,  -low.high,  lower.low,  -middle.low,  -low.low};
        return sum_of_terms(terms, slip);
    }
}

// Rounds what follows from a sum of squares, or from n · squares − values² that is to be divided by `divisor`.
template <bool VALUED, class T>
__device__ bool closes(T& out, Near value, double divisor, uint64 finish) {
    if (!(value.value.high > 0x1p-900)) return false;
    if (VALUED) value = quotient_of(value, divisor);
    if (finish == ROOT || finish == DEVIATION) value = root_of(value);
    return rounds(out, value);
}

// The value of `count` elements; false where it has to be marked.
template <bool VALUED, class T>
__device__ bool spread_value(T& out, const SquareParts<T>& of, const Counted& counted, uint64 finish, uint64 count, uint64 ddof,
                             bool omit_nan) {
    if (of.lost || (of.nan && omit_nan)) return false;
    set_bits(out, 0);
    const bool undefined = VALUED && count <= ddof;
    if (undefined || of.nan || (VALUED && of.infinite)) return out = nan_of<T>(), true;
    if (of.infinite) return set_bits(out, uint64(ENDLESS<T>)), true;
    if (of.extent.all_zero()) return true;
    constexpr int PLACES = Format<T>::PRECISION - 1;
    const int top = of.extent.highest(), least = of.extent.lowest();
    if (top < LEAST_TOP<T>) return false;
    const int squares = term_of_squares(top);
    // The nearest double of a square has as many places as one of float64.
    const bool exact = sizeof(T) == 8 ? counted.exact(squares, 2 * least - PLACES) && counted.exact(term_of_errors(top), 2 * (least - PLACES))
                                      : counted.exact(squares, 2 * (least - PLACES));
    const double squares_slip = exact ? 0 : 2 * counted.slip(squares);
    if constexpr (VALUED) {
        const double n = double(count), divisor = n * double(count - ddof);
        const double of_values = counted.exact(term_of_values(top), least - PLACES) ? 0 : counted.slip(term_of_values(top));
        const DoublePair values = two_sum(of.values.upper, of.values.lower);
        const double slip = (2 * fabs(values.high) * 1.001 + of_values) * of_values + n * squares_slip;
        if (closes<true>(out, about_spread_of(of, n, values, slip), divisor, finish)) return true;
        const Near spread = spread_of(of, n, values, slip);
        if (spread.value.high == 0 && spread.away == 0) return set_bits(out, 0), true;
        return closes<true>(out, spread, divisor, finish);
    } else {
        return closes<false>(out, squares_of(of, squares_slip), 1, finish);
    }
}
