// Sums of a few elements, of products, of squares or of values and squares: no windows are needed where the nearest number is certain
// without them.
//
// PlainValues of float32 are doubles that did not round, which the exponents of the elements tell.
// PlainSquares and PlainProducts of float32 are doubles, PairSquares and PairProducts are two doubles each. What is computed of squares
// is off by no more than CLOSE of their sum, or of n · squares before n · squares − values² cancels; a sum of n products is off by no
// more than CLOSE of n times the largest. If the whole interval rounds alike, its end is the value. What plain squares leave, pairs are
// tried on; the few values that are then left are taken as grouped_value.cuh takes them.
//
// Bounds, in units of 2^−53 (for pairs, of 2^−106) of the sum of squares, or of n · squares: a lane adds up at most MOST_TERMS = 64
// terms, and 32 lanes five times more. With k = 69 additions for each term, plain sums are off by k, sums of values by k Σ|x| with
// (Σ|x|)² ≤ n · squares, and their difference by 3 k + 4 = 211, so that 45 of 2^8 are left for the quotient, the root and the ends.
// Lower doubles of pairs are below 2 · 64 + 5 = 133 and round 2 · 65 · 64 times for squares; with five lanes' additions these are off by
// 10,300, those of values by 5,200, which count twice, the square of a lower double of values is below 4,800, and products round below
// 600: together 26,000 of 2^16.
#pragma once
#include "grouped_value.cuh"

constexpr uint32 MOST_TERMS = 64;  // of a lane

// What becomes of sums: their end, and 1 / (n · (n − ddof)) as two doubles for values of that n.
struct ShortEnd {
    uint64 finish, ddof, count = 0;
    double scale = 0, rest = 0;

    __device__ bool is_root() const { return finish == ROOT || finish == DEVIATION; }
    __device__ void set(uint64 n) {
        const double divisor = double(n) * double(n - ddof);
        count = n;
        scale = 1 / divisor;
        rest = __fma_rn(-scale, divisor, 1) * scale;
    }
    // Half of the distance of two elements is often a tie, which no interval tells.
    __device__ bool is_half(uint64 n) const { return n == 2 && finish == DEVIATION && ddof == 0; }
};

// ½ |a − b|; false where it is not finite.
__device__ inline bool half_distance(float32& out, float32 a, float32 b) {
    const DoublePair distance = two_sum(a, -double(b));
    out = float(fabs(to_odd(distance) * 0.5));
    return fabs(distance.high) < 0x1p1000;
}
__device__ inline bool half_distance(float64& out, float64 a, float64 b) {
    const double distance = a - b;
    out = fabs(distance) * 0.5;
    return fabs(distance) < 0x1p1000;
}

struct PlainValues {
    double values = -0.0;
    Extent<float32> extent;

    __device__ void add(float32 x) {
        const uint32 key = key_of(x);
        extent.include({key, key - 1});
        values += x;
    }
    __device__ void include_lane(int distance) {
        values += __shfl_xor_sync(~0u, values, distance);
        extent.include({__shfl_xor_sync(~0u, extent.largest, distance), __shfl_xor_sync(~0u, extent.smallest, distance)});
    }
    __device__ bool value(float32& out, const ShortEnd& end) const {
        out = float(values);
        if (extent.all_zero()) return true;  // the sum of zeros has their sign
        if (!extent.all_finite() || !sums_plainly(extent, 32 - __clz(int(end.count - 1)))) return false;
        if (end.finish == MEAN && values != 0) out = nearest_quotient(values, double(end.count));
        return true;
    }
};

// The largest magnitude of some terms: the upper words of doubles, in which magnitudes are in order.
struct Largest {
    uint32 word = 0;

    __device__ void include(double term) { include(Largest{uint32(uint64(__double_as_longlong(term)) >> 32) & 0x7fffffffu}); }
    __device__ void include(Largest other) { word = word > other.word ? word : other.word; }
    __device__ void include_lane(int distance) { include(Largest{__shfl_xor_sync(~0u, word, distance)}); }
    // No term is larger. That of an infinity is a NaN.
    __device__ double bound() const { return __longlong_as_double(int64(uint64(word + 1) << 32)); }
};

// The products of float32 are doubles.
struct PlainProducts {
    static constexpr double CLOSE = 0x1p-45;
    double sum = -0.0;
    Largest largest;

    __device__ void add(const Factors<float32>& of) {
        const double product = double(of.x) * of.y;
        sum += product;
        largest.include(product);
    }
    __device__ void include_lane(int distance) {
        sum += __shfl_xor_sync(~0u, sum, distance);
        largest.include_lane(distance);
    }
    __device__ bool value(float32& out, const ShortEnd& end) const {
        const double away = CLOSE * largest.bound() * double(end.count);
        out = float(sum - away);
        if (largest.word == 0) return out = float(sum), true;  // the sum of zeros has their sign
        return out == out && bits_of(out) == bits_of(float(sum + away));
    }
};

struct PairProducts {
    static constexpr double CLOSE = 0x1p-90, LEAST = 0x1p-900;  // below, what products leave may be too small for doubles
    Halves sum{-0.0, 0};
    Largest largest;

    __device__ void add(const Factors<float64>& of) {
        const DoublePair product = product_of(of.x, of.y), next = two_sum(sum.upper, product.high);
        sum = {next.high, sum.lower + (next.low + product.low)};
        largest.include(product.high);
    }
    __device__ void include_lane(int distance) {
        sum.include_lane(distance);
        largest.include_lane(distance);
    }
    __device__ bool value(float64& out, const ShortEnd& end) const {
        const double away = CLOSE * largest.bound() * double(end.count);
        const DoublePair whole = two_sum(sum.upper, sum.lower);
        out = whole.high + (whole.low - away);
        return fabs(whole.high) > LEAST && out == whole.high + (whole.low + away);
    }
};

template <int TERMS>
struct PlainSquares {
    static constexpr double CLOSE = 0x1p-45;
    double squares = 0, values = 0;

    __device__ void add(float32 element) {
        const double x = element;
        squares = __fma_rn(x, x, squares);
        if (VALUED<TERMS>) values += x;
    }
    __device__ bool finite() const { return squares - squares == 0; }
    __device__ void include_lane(int distance) {
        squares += __shfl_xor_sync(~0u, squares, distance);
        if (VALUED<TERMS>) values += __shfl_xor_sync(~0u, values, distance);
    }

    // The value; false where it is not certain.
    __device__ bool value(float32& out, const ShortEnd& end) const {
        double found = squares, away = CLOSE * squares;
        if constexpr (VALUED<TERMS>) {
            const double n = double(end.count);
            found = __fma_rn(n, squares, -(values * values)) * end.scale;
            away *= n * end.scale;
        }
        if (!(found > 2 * away)) return out = 0, squares == 0;
        if (end.is_root()) {
            const double inverse = rsqrt(found);
            found *= inverse;
            away *= 0.75 * inverse;
        }
        out = float(found - away);
        return out == float(found + away);
    }
};

template <class T, int TERMS>
struct PairSquares {
    static constexpr double CLOSE = 0x1p-90, LEAST = 0x1p-900;  // below, what products leave may be too small for doubles
    Halves squares{0, 0}, values{0, 0};

    __device__ void add(T element) {
        const double x = element;
        const DoublePair square = product_of(x, x), sum = two_sum(squares.upper, square.high);
        squares = {sum.high, squares.lower + (sizeof(T) == 8 ? sum.low + square.low : sum.low)};  // a square of float32 is a double
        if constexpr (VALUED<TERMS>) {
            const DoublePair of_values = two_sum(values.upper, x);
            values = {of_values.high, values.lower + of_values.low};
        }
    }
    __device__ bool finite() const { return squares.upper - squares.upper == 0; }
    __device__ void include_lane(int distance) {
        squares.include_lane(distance);
        if (VALUED<TERMS>) values.include_lane(distance);
    }

    __device__ bool value(T& out, const ShortEnd& end) const {
        DoublePair found;
        double away;
        if constexpr (VALUED<TERMS>) {
            const double n = double(end.count);
            const DoublePair first = product_of(n, squares.upper), second = product_of(values.upper, values.upper);
            const double low = __fma_rn(n, squares.lower, first.low) - __fma_rn(2 * values.upper, values.lower, second.low);
            const DoublePair spread = two_sum(first.high, -second.high), scaled = product_of(spread.high, end.scale);
            const double left = __fma_rn(spread.high, end.rest, scaled.low);
            found = two_sum(scaled.high, __fma_rn(spread.low + low, end.scale, left));
            away = CLOSE * first.high * end.scale;
        } else {
            found = two_sum(squares.upper, squares.lower);
            away = CLOSE * found.high;
        }
        if (!(found.high > 4 * away && found.high > LEAST)) return false;
        if (end.is_root()) {
            const double inverse = rsqrt(found.high), root = found.high * inverse;
            const double left = __fma_rn(-root, root, found.high) + found.low;
            found = two_sum(root, left * (0.5 * inverse));
            away *= 0.75 * inverse;
        }
        if (sizeof(T) == 4) away += found.high * 0x1p-50;  // for the ends are rounded twice
        out = T(found.high + (found.low - away));
        return out == T(found.high + (found.low + away));
    }
};

// What short spans are tried with first, where there is something: ties among sums of a few values of float64 are too many.
template <class T, int TERMS>
constexpr bool TRIED = TERMS != VALUES || sizeof(T) == 4;
template <class T, int TERMS>
struct FirstOf {
    using Type = typename Either<sizeof(T) == 8, PairSquares<T, TERMS>, PlainSquares<TERMS>>::Type;
};
template <class T>
struct FirstOf<T, VALUES> {
    using Type = PlainValues;
};
template <class T>
struct FirstOf<T, PRODUCTS> {
    using Type = typename Either<sizeof(T) == 8, PairProducts, PlainProducts>::Type;
};
template <class T, int TERMS>
using FirstSums = typename FirstOf<T, TERMS>::Type;

// The value of `count` elements, of which `pair` returns number 0 or 1, from their sums; false where it is not certain.
template <int TERMS, class T, class Sums, class Pair>
__device__ bool short_value(T& out, const Sums& sums, uint64 count, ShortEnd& end, const Pair& pair) {
    if constexpr (!SQUARED<TERMS>) {
        if (!count) return out = 0, true;
        end.count = count;
    }
    if constexpr (TERMS == MOMENTS) {
        if (count <= end.ddof) return out = nan_of<T>(), sums.finite();
        if (count == 1) return out = 0, sums.finite();
        if (end.is_half(count)) return half_distance(out, pair(0), pair(1));
        if (count != end.count) end.set(count);
    }
    return sums.value(out, end);
}
