// Sums of many values at once: of elements, of squares, of both, or of products of two arrays, in windows that are open below. The upper double of a sum is exact,
// and the lower one takes what the upper leaves and may round. The exponents of the elements tell whether it did, and how far it may be
// off (grouped_value.cuh), so a sum needs two levels whatever its elements are.
//
// Exactness: with fewer than 2^N terms below 2^t a thread, the unit of the upper double is 2^u for u = t + N − 51. It begins at
// 1.5 · 2^(52+u) and stays in [2^(52+u), 2^(53+u)] (exact_window.cuh). What it leaves of a term is exact, at most 2^(u−1), and a
// multiple of the last place that any term has. A thread whose terms grow moves the upper double to a larger unit, which leaves no
// more than a term does. A term of values is an element, or the sum of a few of float32 in a double that did not round.
//
// The square of a float32 is a double. That of a float64 is the nearest double and an error of at most 2^−53 of it, which is a
// double, too; each has a sum of its own. So have products of two elements, whose own exponents tell of them.
#pragma once
#include "exact_nearest.cuh"
#include "grouped_lanes.cuh"

// An exact sum and what goes with it, which may have been rounded.
struct Halves {
    double upper, lower;

    __device__ void include(const Halves& other) {
        const DoublePair sum = two_sum(upper, other.upper);
        upper = sum.high;
        lower = (lower + other.lower) + sum.low;
    }
    __device__ void include_lane(int distance) {
        include({__shfl_xor_sync(~0u, upper, distance), __shfl_xor_sync(~0u, lower, distance)});
    }
};

struct OpenSum {
    double upper, lower = 0;

    static __device__ double bias(int unit) {
        return __longlong_as_double(int64(uint64(unit + 52 + 1023) << 52 | 0x8000000000000ull));
    }
    __device__ void start(int unit) { upper = bias(unit); }
    __device__ void add(double x) {
        const double sum = upper + x;
        lower += x - (sum - upper);
        upper = sum;
    }
    // x² where it is a double.
    __device__ void add_square(double x) {
        const double sum = __fma_rn(x, x, upper);
        lower += __fma_rn(x, x, upper - sum);
        upper = sum;
    }
    __device__ void move(int from, int to) {
        const double sum = upper - bias(from);
        start(to);
        add(sum);
    }
    __device__ Halves halves(int unit) const { return {upper - bias(unit), lower}; }
};

// Which sums a kind of terms has: products are values, which are added up as they are. Squares and products of float64 have errors.
template <int TERMS>
constexpr bool VALUED = TERMS == VALUES || TERMS == MOMENTS || TERMS == PRODUCTS;
template <int TERMS>
constexpr bool SQUARED = TERMS == SQUARES || TERMS == MOMENTS;
template <class T, int TERMS>
constexpr bool WITH_ERRORS = (SQUARED<TERMS> || TERMS == PRODUCTS) && sizeof(T) == 8;
// Whether a term may be −0.
template <int TERMS>
constexpr bool SIGNED_TERMS = TERMS == VALUES || TERMS == PRODUCTS;

// Whose exponents are noted: an element's, or that of a product, the nearest double.
template <class T, int TERMS>
using Noted = typename Either<TERMS == PRODUCTS, float64, T>::Type;

// Exponents of the largest element, or product, for which all sums of fewer than 2^46 elements are in the range of doubles, with all that is
// computed of them.
template <class T, int TERMS>
constexpr int LEAST_TOP = TERMS == PRODUCTS ? (sizeof(T) == 4 ? -300 : -900) : sizeof(T) == 4 ? -126 : SQUARED<TERMS> ? -400 : -1022;
template <class T, int TERMS>
constexpr int MOST_TOP = TERMS == PRODUCTS ? (sizeof(T) == 4 ? 256 : 960) : sizeof(T) == 4 ? 127 : SQUARED<TERMS> ? 460 : 960;

// Terms of elements up to 2^top: each is below 2^(the number).
__device__ constexpr int term_of_values(int top) { return top + 1; }
__device__ constexpr int term_of_squares(int top) { return 2 * top + 2; }
template <int TERMS>
__device__ constexpr int term_of_errors(int top) {
    return TERMS == PRODUCTS ? top - 52 : 2 * top - 52;  // or this itself
}

// What was met among the elements of a value. PLUS_ZERO is noted of tiles of zeros alone.
struct Met {
    enum : uint32 { LOST = 1, NOT_A_NUMBER = 2, POSITIVE_INFINITY = 4, NEGATIVE_INFINITY = 8, PLUS_ZERO = 16 };
};

// What is known of a value, or of a part of it.
template <class T, int TERMS>
struct Parts {
    Halves values{0, 0}, squares{0, 0}, errors{0, 0};
    Extent<Noted<T, TERMS>> extent;
    uint32 met = 0;

    // Does something with each of the sums that there are.
    template <class Does>
    __device__ void each(const Does& does) {
        if constexpr (VALUED<TERMS>) does(values);
        if constexpr (SQUARED<TERMS>) does(squares);
        if constexpr (WITH_ERRORS<T, TERMS>) does(errors);
    }
    __device__ void include(const Parts& other) {
        if constexpr (VALUED<TERMS>) values.include(other.values);
        if constexpr (SQUARED<TERMS>) squares.include(other.squares);
        if constexpr (WITH_ERRORS<T, TERMS>) errors.include(other.errors);
        extent.include(other.extent);
        met |= other.met;
    }
    // What LANES neighbouring lanes have, in each of them. All lanes of a warp call this.
    template <int LANES>
    __device__ void include_lanes() {
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2) each([&](Halves& sum) { sum.include_lane(distance); });
        extent = Together<LANES>::extent(extent);
        if (!__all_sync(~0u, met == 0)) met = Together<LANES>::flags(met);
    }
};

// The products of what was read of two arrays, and of float64 what the nearest doubles leave. `lost` says that one is finite and out of
// the range of doubles.
template <class T, int N>
struct ProductsOfPair {
    static constexpr int SIZE = N;
    static constexpr bool WIDE = sizeof(T) == 8;
    double nearest[N], errors[WIDE ? N : 1];
    bool lost = false;

    template <class Of>
    __device__ ProductsOfPair(const Of& of_x, const Of& of_y) {
#pragma unroll
        for (int at = 0; at < N; ++at) {
            const double x = widen(of_x[at]), y = widen(of_y[at]);
            nearest[at] = x * y;
            if constexpr (WIDE) {
                errors[at] = __fma_rn(x, y, -nearest[at]);
                lost |= nearest[at] == 0 ? x != 0 && y != 0 : nearest[at] - nearest[at] != 0 && x - x == 0 && y - y == 0;
            }
        }
    }
    __device__ double operator[](int at) const { return nearest[at]; }
    __device__ void make_zero(int at, bool negative) {
        nearest[at] = negative ? -0.0 : 0.0;
        if (WIDE) errors[at] = 0;
    }
};

template <class T, int N>
__device__ Extent<float64> extent_of(const ProductsOfPair<T, N>& products) {
    Extent<float64> found;
#pragma unroll
    for (int at = 0; at < N; ++at) {
        const uint32 key = key_of(products[at]);
        found.include({key, key - 1});
    }
    return found;
}

// The sums of one thread.
template <class T, int TERMS>
struct Sums {
    static constexpr int NONE = -1 << 20;
    using Note = Noted<T, TERMS>;
    OpenSum values, squares, errors;
    Extent<Note> extent;
    int top = NONE;
    uint32 met = 0;

    static __device__ int unit(int term, int bits) { return term + bits - 51; }

    // Makes room for elements of that exponent; fewer than 2^bits terms are added.
    __device__ void rise(int exponent, int bits) {
        const int to = exponent > LEAST_TOP<T, TERMS> ? exponent : LEAST_TOP<T, TERMS>;
        if (top == NONE) {
            if constexpr (VALUED<TERMS>) values.start(unit(term_of_values(to), bits));
            if constexpr (SQUARED<TERMS>) squares.start(unit(term_of_squares(to), bits));
            if constexpr (WITH_ERRORS<T, TERMS>) errors.start(unit(term_of_errors<TERMS>(to), bits));
        } else if (to > top) {
            if constexpr (VALUED<TERMS>) values.move(unit(term_of_values(top), bits), unit(term_of_values(to), bits));
            if constexpr (SQUARED<TERMS>) squares.move(unit(term_of_squares(top), bits), unit(term_of_squares(to), bits));
            if constexpr (WITH_ERRORS<T, TERMS>) errors.move(unit(term_of_errors<TERMS>(top), bits), unit(term_of_errors<TERMS>(to), bits));
        }
        top = to > top ? to : top;
    }

    // Notes the elements that are not finite and leaves −0 in their places.
    template <class Tile>
    __device__ void take_out(Tile& tile) {
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const Bits<Note> bits = bits_of(tile[at]), magnitude = bits & Bits<Note>(~SIGN<Note>);
            if (magnitude < ENDLESS<Note>) continue;
            met |= magnitude > ENDLESS<Note> ? Met::NOT_A_NUMBER : bits == magnitude ? Met::POSITIVE_INFINITY : Met::NEGATIVE_INFINITY;
            tile.make_zero(at, true);
        }
    }

    template <class Of>
    __device__ void add(Both<Of>& pair, int bits) {
        ProductsOfPair<T, Of::SIZE> products(pair.x, pair.y);
        if (products.lost) met |= Met::LOST;
        add(products, bits);
    }

    template <class Tile>
    __device__ void add(Tile& tile, int bits) {
        Extent<Note> seen = extent_of(tile);
        if (!seen.all_finite()) {
            take_out(tile);
            seen = extent_of(tile);
        }
        if (seen.all_zero()) {
            if (SIGNED_TERMS<TERMS> && __double_as_longlong(plain_sum(tile)) == 0) met |= Met::PLUS_ZERO;
            return;
        }
        extent.include(seen);
        const int highest = seen.highest();
        if (highest > MOST_TOP<T, TERMS>) met |= Met::LOST;
        if (met & Met::LOST) return;
        if (highest > top) rise(highest, bits);
        if constexpr (VALUED<TERMS>) {
            if (sums_plainly(seen, places_of(Tile::SIZE))) {
                values.add(plain_sum(tile));
            } else {
#pragma unroll
                for (int at = 0; at < tile.SIZE; ++at) values.add(widen(tile[at]));
            }
        }
        if constexpr (TERMS == PRODUCTS && WITH_ERRORS<T, TERMS>) {
#pragma unroll
            for (int at = 0; at < tile.SIZE; ++at) errors.add(tile.errors[at]);
        }
        if constexpr (SQUARED<TERMS>) {
#pragma unroll
            for (int at = 0; at < tile.SIZE; ++at) {
                const double x = widen(tile[at]);
                if constexpr (WITH_ERRORS<T, TERMS>) {
                    const double square = x * x;
                    squares.add(square);
                    errors.add(__fma_rn(x, x, -square));
                } else {
                    squares.add_square(x);
                }
            }
        }
    }

    // Puts the sums of so far to others, so that fewer terms are in one window.
    __device__ void flush(Parts<T, TERMS>& others, int bits) {
        static_assert(!SQUARED<TERMS>);
        if (top == NONE) return;
        flush_one(others.values, values, unit(term_of_values(top), bits));
        if constexpr (WITH_ERRORS<T, TERMS>) flush_one(others.errors, errors, unit(term_of_errors<TERMS>(top), bits));
    }
    static __device__ void flush_one(Halves& others, OpenSum& mine, int unit) {
        others.include(mine.halves(unit));
        mine.start(unit);
        mine.lower = 0;
    }

    __device__ Parts<T, TERMS> parts(int bits) const {
        Parts<T, TERMS> of;
        of.extent = extent;
        of.met = met;
        if (top == NONE) return of;
        if constexpr (VALUED<TERMS>) of.values = values.halves(unit(term_of_values(top), bits));
        if constexpr (SQUARED<TERMS>) of.squares = squares.halves(unit(term_of_squares(top), bits));
        if constexpr (WITH_ERRORS<T, TERMS>) of.errors = errors.halves(unit(term_of_errors<TERMS>(top), bits));
        return of;
    }
};
