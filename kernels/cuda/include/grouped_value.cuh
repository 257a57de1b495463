// The value of a reduction from its sums of grouped_sums.cuh, rounded once: a sum, a mean, a sum of squares, its root, or the variance
// or the deviation from the sums of values and of squares.
//
// A number is two doubles and how far these may be off, which is 0 where they are exact. What lies so near to where roundings part
// that the last is not sure is not rounded: such values are marked (grouped_lanes.cuh).
//
// Bounds: 2^L threads with fewer than 2^N terms below 2^t each leave lower doubles of at most 2^(t+2N−52) each. What a thread has goes
// through fewer than 2^D sums of two up to the last one. Such a sum leaves at most 2^−53 of its upper double, and all upper doubles of
// all sums together are at most 2^D times those of the threads: so the sums leave at most 2^(t+N+L+D−53). All lower doubles are together
// at most 2^(t+N+L+M−51), with M the larger of N and D. They are exact if that is no more than 2^53 of the last place of any term.
// Otherwise each addition of a thread is off by 2^−53 of what the thread leaves: together by 2^(t+3N+L−105). The lower doubles of all
// sums of two are together at most 2^D times all that is left. Each has two additions, which are off by 2^−53 of it: together by
// 2^(t+N+L+M+D−103).
#pragma once
#include "grouped_sums.cuh"

// How many terms there may be: fewer than 2^terms a thread, in 2^threads threads, each of which goes through fewer than 2^sums sums of two.
struct Counted {
    int terms, threads, sums;

    __device__ int more() const { return terms > sums ? terms : sums; }
    __device__ int bound() const { return terms + threads + more() - 51; }
    // `last` is the exponent of the last place of any term.
    __device__ bool exact(int term, int last) const { return term + bound() <= 53 + last; }
    __device__ double slip(int term) const {
        const int larger = 2 * terms - 2 > sums + more() ? 2 * terms - 2 : sums + more();
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

// x / (divisor + rest), of which the rest is at most half a place of the divisor.
__device__ inline Near quotient_of(const Near& x, double divisor, double rest = 0) {
    const double first = x.value.high / divisor;
    const DoublePair less = product_of(first, rest);
    const DoublePair over = two_sum(__fma_rn(-first, divisor, x.value.high), x.value.low), left = two_sum(over.high, -less.high);
    const double low = left.low + (over.low - less.low), second = left.high / divisor;
    const double last = __fma_rn(-second, divisor, left.high) + low, slip = fabs(second * rest) + fabs(low) * 0x1p-52 * (rest != 0);
    return {two_sum(first, second), (fabs(last) + slip + x.away) / divisor * 2};
}

// 1 / n of a whole number below 2^50, to two places. That of a power of two is exact.
__device__ inline double inverse_of(double n) {
    double inverse = 1 / float(n);
#pragma unroll
    for (int step = 0; step < 2; ++step) inverse = __fma_rn(inverse, __fma_rn(-n, inverse, 1), inverse);
    return inverse;
}

// x / n of such a number. The first quotient is off by less than three places, so that its remainder is a double. The second one is
// mended, so that a quotient of two doubles is found.
__device__ inline Near quotient_of_whole(const Near& x, double n) {
    const double inverse = inverse_of(n), first = x.value.high * inverse;
    const DoublePair left = two_sum(__fma_rn(-first, n, x.value.high), x.value.low);
    const double near = left.high * inverse, second = __fma_rn(__fma_rn(-near, n, left.high) + left.low, inverse, near);
    const double last = __fma_rn(-second, n, left.high) + left.low;
    return {two_sum(first, second), (fabs(last) + x.away) * inverse * 2};
}

// x / n to the nearest float32, for x ≠ 0 and such a number, of a mean, which is no larger than float32 are: the remainder of the quotient
// says whether the next number is nearer.
__device__ inline float32 nearest_quotient(double x, double n) {
    const float32 first = float(x * inverse_of(n));
    const double left = __fma_rn(-n, first, x);
    if (left == 0) return first;
    const uint32 bits = bits_of(first), beside = (left < 0) == (bits >> 31 != 0) ? bits + 1 : bits - 1;
    float32 next;
    set_bits(next, beside);
    const double step = n * fabs(double(next) - first), twice = 2 * fabs(left);
    return twice > step || (twice == step && (bits & 1)) ? next : first;
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

template <class T, int TERMS>
__device__ Near squares_of(const Parts<T, TERMS>& of, double slip) {
    if constexpr (sizeof(T) == 8) {
        double terms[4] = {of.squares.upper, of.squares.lower, of.errors.upper, of.errors.lower};
        return sum_of_terms(terms, slip);
    } else {
        return {two_sum(of.squares.upper, of.squares.lower), slip};
    }
}

// n · squares − values², of which no more than 2^−98 of the first product is left out. That is enough unless they cancel.
template <class T, int TERMS>
__device__ Near about_spread_of(const Parts<T, TERMS>& of, double count, const DoublePair& values, double slip) {
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
template <class T, int TERMS>
__device__ Near spread_of(const Parts<T, TERMS>& of, double count, const DoublePair& values, double slip) {
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

// The bits of a number: the least for which 2^bits is more.
__device__ inline int bits_of_count(uint64 count) { return 64 - __clzll(int64(count)); }

// Where values go, and what becomes of their sums.
template <class T>
struct Results {
    T* values;
    uint32* marked;  // how many values are marked
    uint64 finish, ddof;
    bool omit_nan;  // values with a NaN are marked

    __device__ T marking() const {
        atomicAdd(marked, 1u);
        return mark<T>();
    }

    // A sum or a mean.
    __device__ bool rounds_sum(T& out, const Near& sum, uint64 count) const {
        const bool exact = sum.away == 0;
        if (finish != MEAN || (sum.value.high == 0 && exact)) return rounds(out, sum);
        if constexpr (sizeof(T) == 4)
            if (sum.value.low == 0 && exact) return out = nearest_quotient(sum.value.high, double(count)), true;
        return fabs(sum.value.high) > 0x1p-700 && rounds(out, quotient_of_whole(sum, double(count)));
    }
    // The same of a sum that is exact; a zero keeps its sign.
    __device__ T of_exact(const DoublePair& sum, uint64 count) const {
        T out = T(sum.high);
        return sum.high == 0 || rounds_sum(out, {sum, 0}, count) ? out : marking();
    }
    // Rounds what follows from a sum of squares, or from n · squares − values² that is to be divided by `divisor`.
    template <bool DIVIDED>
    __device__ bool closes(T& out, Near value, const DoublePair& divisor) const {
        if (!(value.value.high > 0x1p-900)) return false;
        if (DIVIDED) value = quotient_of(value, divisor.high, divisor.low);
        if (finish == ROOT || finish == DEVIATION) value = root_of(value);
        return rounds(out, value);
    }

    // The value of a sum of `count` finite elements that are not all zero.
    __device__ bool close(T& out, const Parts<T, VALUES>& of, const Counted& counted, uint64 count) const {
        const int term = term_of_values(of.extent.highest());
        const double slip = counted.exact(term, of.extent.lowest() - (Format<T>::PRECISION - 1)) ? 0 : counted.slip(term);
        return rounds_sum(out, {two_sum(of.values.upper, of.values.lower), slip}, count);
    }
    // The same of products. That of float32 has no more than twice its places. Of float64, it is rounded to a double, and what that
    // leaves is a multiple of the last places of both factors, whose exponents add up to no less than that of the product, less one.
    __device__ bool close(T& out, const Parts<T, PRODUCTS>& of, const Counted& counted, uint64) const {
        constexpr int PLACES = Format<T>::PRECISION - 1;
        const int top = of.extent.highest(), last = of.extent.lowest() - 1 - 2 * PLACES;
        if (top < LEAST_TOP<T, PRODUCTS>) return false;
        const int term = term_of_values(top);
        if constexpr (sizeof(T) == 8) {
            const bool exact = counted.exact(term, of.extent.lowest() - PLACES) && counted.exact(term_of_errors<PRODUCTS>(top), last);
            double terms[4] = {of.values.upper, of.values.lower, of.errors.upper, of.errors.lower};
            return rounds(out, sum_of_terms(terms, exact ? 0 : 2 * counted.slip(term)));
        } else {
            return rounds(out, {two_sum(of.values.upper, of.values.lower), counted.exact(term, last) ? 0 : counted.slip(term)});
        }
    }
    // The same of squares, or of both.
    template <int TERMS>
    __device__ bool close(T& out, const Parts<T, TERMS>& of, const Counted& counted, uint64 count) const {
        constexpr int PLACES = Format<T>::PRECISION - 1;
        const int top = of.extent.highest(), least = of.extent.lowest();
        if (top < LEAST_TOP<T, TERMS>) return false;
        const int squares = term_of_squares(top);
        // The nearest double of a square has as many places as one of float64.
        const bool exact = sizeof(T) == 8 ? counted.exact(squares, 2 * least - PLACES) && counted.exact(term_of_errors<TERMS>(top), 2 * (least - PLACES))
                                          : counted.exact(squares, 2 * (least - PLACES));
        const double squares_slip = exact ? 0 : 2 * counted.slip(squares);
        if constexpr (VALUED<TERMS>) {
            const double n = double(count);
            const DoublePair divisor = product_of(n, double(count - ddof));
            const double of_values = counted.exact(term_of_values(top), least - PLACES) ? 0 : counted.slip(term_of_values(top));
            const DoublePair values = two_sum(of.values.upper, of.values.lower);
            const double slip = (2 * fabs(values.high) * 1.001 + of_values) * of_values + n * squares_slip;
            if (closes<true>(out, about_spread_of(of, n, values, slip), divisor)) return true;
            const Near spread = spread_of(of, n, values, slip);
            if (spread.value.high == 0 && spread.away == 0) return set_bits(out, 0), true;
            return closes<true>(out, spread, divisor);
        } else {
            return closes<false>(out, squares_of(of, squares_slip), {1, 0});
        }
    }

    // The value of `count` elements, or a mark. The value of none is 0, or NaN where it is a variance.
    template <int TERMS>
    __device__ T value(const Parts<T, TERMS>& of, const Counted& counted, uint64 count) const {
        if (of.met & Met::LOST || (of.met & Met::NOT_A_NUMBER && omit_nan)) return marking();
        const bool plus = of.met & Met::POSITIVE_INFINITY, minus = of.met & Met::NEGATIVE_INFINITY;
        const bool undefined = TERMS == MOMENTS ? count <= ddof || plus || minus : SIGNED_TERMS<TERMS> && plus && minus;
        if (undefined || of.met & Met::NOT_A_NUMBER) return nan_of<T>();
        T out;
        set_bits(out, uint64(ENDLESS<T>) | (SIGNED_TERMS<TERMS> && minus ? uint64(SIGN<T>) : 0));
        if (plus || minus) return out;
        set_bits(out, SIGNED_TERMS<TERMS> && count && !(of.met & Met::PLUS_ZERO) ? uint64(SIGN<T>) : 0);
        if (of.extent.all_zero() || close(out, of, counted, count)) return out;
        return marking();
    }
    template <int TERMS>
    __device__ void put(uint64 at, const Parts<T, TERMS>& of, const Counted& counted, uint64 count) const {
        values[at] = value(of, counted, count);
    }
};
