// Sums of squares, alone or with values, of a few elements: no windows are needed where the nearest number is certain without them.
//
// Sums of float32 are doubles, and those of float64 two doubles each. All that is computed of them is off by no more than CLOSE of the
// sum of squares, or of n · squares before n · squares − values² cancels. If the whole interval rounds alike, its end is the value. The
// few other values, such as those of equal elements, are taken as grouped_spread.cuh takes them.
//
// Bounds, in units of 2^−53 (or, for float64, of 2^−106) of the sum of squares, or of n · squares: a lane adds up at most MOST_TERMS = 64
// terms, and 32 lanes five times more. With k = 69 additions for each term, sums of float32 are off by k, sums of values by k Σ|x| with
// Σ|x|² ≤ n · squares, and their difference by 3 k + 4 = 211, so that 45 of 2^8 are left for the quotient, the root and the ends. Lower
// doubles of float64 are below 2 · 64 + 5 = 133 and round 2 · 65 · 64 times for squares; with five lanes' additions these are off by
// 10,300, those of values by 5,200, which count twice, the square of a lower double of values is below 4,800, and products round below
// 600: together 26,000 of 2^16.
#pragma once
#include "grouped_spread.cuh"

constexpr uint32 MOST_TERMS = 64;  // of a lane

template <class T, bool VALUED>
struct ShortSquares;

template <bool VALUED>
struct ShortSquares<float32, VALUED> {
    static constexpr double CLOSE = 0x1p-45;
    double squares = 0, values = 0;

    __device__ void add(float32 element) {
        const double x = element;
        squares = __fma_rn(x, x, squares);
        if (VALUED) values += x;
    }
    __device__ void include_lane(int distance) {
        squares += __shfl_xor_sync(~0u, squares, distance);
        if (VALUED) values += __shfl_xor_sync(~0u, values, distance);
    }

    // The value of `count` elements; false where it is not certain.
    __device__ bool value(float32& out, uint64 finish, uint64 count, uint64 ddof) const {
        double found = squares, away = CLOSE * squares;
        if constexpr (VALUED) {
            if (count <= ddof) return false;
            const double n = double(count), scale = 1 / (n * double(count - ddof));
            found = __fma_rn(n, squares, -(values * values)) * scale;
            away *= n * scale;
        }
        if (!(found > 2 * away)) return out = 0, squares == 0;
        if (finish == ROOT || finish == DEVIATION) {
            const double inverse = rsqrt(found);
            found *= inverse;
            away *= 0.75 * inverse;
        }
        out = float(found - away);
        return out == float(found + away);
    }
};

template <bool VALUED>
struct ShortSquares<float64, VALUED> {
    static constexpr double CLOSE = 0x1p-90, LEAST = 0x1p-900;  // below, what products leave may be too small for doubles
    Halves squares{0, 0}, values{0, 0};

    __device__ void add(double x) {
        const DoublePair square = product_of(x, x), sum = two_sum(squares.upper, square.high);
        squares = {sum.high, squares.lower + (sum.low + square.low)};
        if constexpr (VALUED) {
            const DoublePair of_values = two_sum(values.upper, x);
            values = {of_values.high, values.lower + of_values.low};
        }
    }
    static __device__ Halves of_lane(const Halves& mine, int distance) {
        return {__shfl_xor_sync(~0u, mine.upper, distance), __shfl_xor_sync(~0u, mine.lower, distance)};
    }
    __device__ void include_lane(int distance) {
        squares.include(of_lane(squares, distance));
        if (VALUED) values.include(of_lane(values, distance));
    }

    __device__ bool value(float64& out, uint64 finish, uint64 count, uint64 ddof) const {
        DoublePair found;
        double away;
        if constexpr (VALUED) {
            if (count <= ddof) return false;
            const double n = double(count), divisor = n * double(count - ddof);
            const double scale = 1 / divisor, rest = __fma_rn(-scale, divisor, 1) * scale;
            const DoublePair first = product_of(n, squares.upper), second = product_of(values.upper, values.upper);
            const double low = __fma_rn(n, squares.lower, first.low) - __fma_rn(2 * values.upper, values.lower, second.low);
            const DoublePair spread = two_sum(first.high, -second.high), scaled = product_of(spread.high, scale);
            found = two_sum(scaled.high, __fma_rn(spread.low + low, scale, __fma_rn(spread.high, rest, scaled.low)));
            away = CLOSE * first.high * scale;
        } else {
            found = two_sum(squares.upper, squares.lower);
            away = CLOSE * found.high;
        }
        if (!(found.high > 4 * away && found.high > LEAST)) return false;
        if (finish == ROOT || finish == DEVIATION) {
            const double inverse = rsqrt(found.high), root = found.high * inverse;
            const double left = __fma_rn(-root, root, found.high) + found.low;
            found = two_sum(root, left * (0.5 * inverse));
            away *= 0.75 * inverse;
        }
        out = found.high + (found.low - away);
        return out == found.high + (found.low + away);
    }
};
