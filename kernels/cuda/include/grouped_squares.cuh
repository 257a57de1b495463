// Sums of squares, alone or with values, of many values at once, in windows that are open below: the upper double of a sum is exact,
// and the lower one takes what the upper leaves and may round. The exponents of the elements tell whether it did, and how far it
// may be off (grouped_spread.cuh), so a sum needs two levels whatever its elements are.
//
// Exactness: with fewer than 2^N terms below 2^t a thread, the unit of the upper double is 2^u for u = t + N − 51. It begins at
// 1.5 · 2^(52+u) and stays in [2^(52+u), 2^(53+u)] (exact_window.cuh). What it leaves of a term is exact, at most 2^(u−1), and a
// multiple of the last place that any term has. A thread whose terms grow moves the upper double to a larger unit, which leaves no
// more than a term does.
//
// The square of a float32 is a double. That of a float64 is the nearest double and an error of at most 2^−53 of it, which is a
// double, too; each has a sum of its own.
#pragma once
#include "grouped_window.cuh"

// An exact sum and what goes with it, which may have been rounded.
struct Halves {
    double upper, lower;

    __device__ void include(const Halves& other) {
        const DoublePair sum = two_sum(upper, other.upper);
        upper = sum.high;
        lower = (lower + other.lower) + sum.low;
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

// Exponents of the largest element for which all sums are in the range of doubles, with all that is computed of them.
template <class T>
constexpr int LEAST_TOP = sizeof(T) == 8 ? -400 : -126;
template <class T>
constexpr int MOST_TOP = sizeof(T) == 8 ? 480 : 127;

// Terms of elements up to 2^top: each is below 2^(the number).
__device__ constexpr int term_of_values(int top) { return top + 1; }
__device__ constexpr int term_of_squares(int top) { return 2 * top + 2; }
__device__ constexpr int term_of_errors(int top) { return 2 * top - 52; }  // or this itself

// What is known of a value, or of a part of it.
template <class T>
struct SquareParts {
    Halves values{0, 0}, squares{0, 0}, errors{0, 0};
    Extent<T> extent;
    bool nan = false, infinite = false, lost = false;

    __device__ void include(const SquareParts& other) {
        values.include(other.values);
        squares.include(other.squares);
        if constexpr (sizeof(T) == 8) errors.include(other.errors);
        extent.include(other.extent);
        nan |= other.nan;
        infinite |= other.infinite;
        lost |= other.lost;
    }
};

// The sums of one thread.
template <class T, bool VALUED>
struct SquareSums {
    static constexpr bool LONG = sizeof(T) == 8;  // squares have errors
    static constexpr int NONE = -1 << 20;
    OpenSum values, squares, errors;
    Extent<T> extent;
    int top = NONE;
    bool nan = false, infinite = false, lost = false;

    static __device__ int unit(int term, int bits) { return term + bits - 51; }

    // Makes room for elements of that exponent; fewer than 2^bits terms are added.
    __device__ void rise(int exponent, int bits) {
        const int to = exponent > LEAST_TOP<T> ? exponent : LEAST_TOP<T>;
        if (top == NONE) {
            values.start(unit(term_of_values(to), bits));
            squares.start(unit(term_of_squares(to), bits));
            errors.start(unit(term_of_errors(to), bits));
        } else if (to > top) {
            values.move(unit(term_of_values(top), bits), unit(term_of_values(to), bits));
            squares.move(unit(term_of_squares(top), bits), unit(term_of_squares(to), bits));
            if (LONG) errors.move(unit(term_of_errors(top), bits), unit(term_of_errors(to), bits));
        }
        top = to > top ? to : top;
    }

    // Notes the elements that are not finite and leaves −0 in their places.
    template <class Tile>
    __device__ void take_out(Tile& tile) {
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const Bits<T> magnitude = bits_of(tile[at]) & Bits<T>(~SIGN<T>);
            if (magnitude < ENDLESS<T>) continue;
            nan |= magnitude > ENDLESS<T>;
            infinite |= magnitude == ENDLESS<T>;
            tile.make_zero(at, true);
        }
    }

    template <class Tile>
    __device__ void add(Tile& tile, int bits) {
        Extent<T> seen = extent_of(tile);
        if (!seen.all_finite()) {
            take_out(tile);
            seen = extent_of(tile);
        }
        if (seen.all_zero()) return;
        extent.include(seen);
        const int highest = seen.highest();
        if (highest > MOST_TOP<T>) lost = true;
        if (lost) return;
        if (highest > top) rise(highest, bits);
        if constexpr (VALUED) {
            if (sums_plainly(seen, places_of(Tile::SIZE))) {
                values.add(plain_sum(tile));
            } else {
#pragma unroll
                for (int at = 0; at < tile.SIZE; ++at) values.add(widen(tile[at]));
            }
        }
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const double x = widen(tile[at]);
            if constexpr (LONG) {
                const double square = x * x;
                squares.add(square);
                errors.add(__fma_rn(x, x, -square));
            } else {
                squares.add_square(x);
            }
        }
    }

    __device__ SquareParts<T> parts(int bits) const {
        SquareParts<T> of;
        of.extent = extent;
        of.nan = nan;
        of.infinite = infinite;
        of.lost = lost;
        if (top == NONE) return of;
        if (VALUED) of.values = values.halves(unit(term_of_values(top), bits));
        of.squares = squares.halves(unit(term_of_squares(top), bits));
        if (LONG) of.errors = errors.halves(unit(term_of_errors(top), bits));
        return of;
    }
};
