// Exact sums in float64 arithmetic: LEVELS running totals, each rounding to a multiple of its own unit.
//
// Level 1 starts at the bias 1.5 · 2^(52+u) and stays in [2^(52+u), 2^(53+u)], where doubles lie 2^u apart. Adding x to it
// rounds x to a multiple of 2^u; the remainder, at most 2^(u−1), is exact (Dekker's Fast2Sum: the total is larger than x)
// and goes to level 2, whose unit is 2^40 smaller, and so on. The last level has no bias and must never round.
// With at most 2^11 additions a level between flushes (BUDGET) that holds while
//   top:     |x| < 2^(u+39), for then a biased total moves less than 2^51 units from its start: 2^11 (2^39 + 1/2) at
//            level 1, and at the others, with unit v, 2^11 remainders of at most 2^(v+40−1) and their roundings;
//   bottom:  x is a multiple of 2^(v−42), v the unit of the last level but one, for then the last total is a multiple
//            of 2^(v−42) and at most 2^11 · 2^(v−1) = 2^52 of it.
// The window, the exponents of elements for which both hold, is kept in `floor` and `ceiling` and asked of every tile:
// two integer comparisons an element. A tile outside it moves the window or is added element by element.
//
// Totals of fixed exponent ranges are Malcolm's (1971) and Demmel and Hida's (2003); the biased extraction is Rump, Ogita
// and Oishi's (AccSum, 2008) and Demmel and Nguyen's (2013); the two-product Dekker's (1971), by FMA.
#pragma once
#include "exact_digits.cuh"
#include "exact_specials.cuh"

constexpr int SPACING = 40;

// Levels that give a window of 34 binades or more for elements; squares take two binades each.
template <class T, int TERMS>
constexpr int LEVELS = TERMS == SQUARES ? (sizeof(T) == 8 ? 4 : sizeof(T) == 4 ? 3 : 2) : sizeof(T) == 8 ? 3 : 2;
template <>
inline constexpr int LEVELS<float16, VALUES> = 1;
template <>
inline constexpr int LEVELS<float16, MAGNITUDES> = 1;

// All float16 values, and their squares, lie in one window.
template <class T>
constexpr bool ALWAYS_INSIDE = is_same<T, float16>;

// The magnitude of an element as an integer of 32 bits that is 0 only for zero and grows with it; the exponent field
// begins at bit KEY_SHIFT.
__device__ inline uint32 key_of(float x) { return __float_as_uint(x) & 0x7fffffffu; }
__device__ inline uint32 key_of(double x) {
    const uint64 bits = __double_as_longlong(x);
    const uint32 low = uint32(bits);
    return (uint32(bits >> 32) & 0x7fffffffu) | (low < 1 ? low : 1);
}
template <class T>
constexpr int KEY_SHIFT = sizeof(T) == 8 ? 20 : 23;
template <class T>
constexpr int KEY_BIAS = sizeof(T) == 8 ? 1023 : 127;
template <class T>
constexpr int KEY_LIMIT = sizeof(T) == 8 ? 2047 : 255;  // the field of infinities and NaNs

// The largest key of a tile, and the smallest that is not zero, less one.
template <class T, int FLIGHT>
struct Span {
    uint32 largest = 0, smallest = ~0u;
    __device__ explicit Span(const Tile<T, FLIGHT>& tile) {
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const uint32 key = key_of(widen(tile[at]));
            largest = largest > key ? largest : key;
            smallest = smallest < key - 1 ? smallest : key - 1;
        }
    }
};

__device__ inline int floor_half(int x) { return x >> 1; }
__device__ inline int ceil_half(int x) { return (x + 1) >> 1; }

template <class T, int TERMS>
struct Window {
    static constexpr int L = LEVELS<T, TERMS>;
    static constexpr int BUDGET = 2048 / (L == 4 ? 2 : 1);  // both parts of a product go through the middle levels
    static constexpr int NOTHING = 1 << 20;
    static constexpr int LOWEST_UNIT = -1074 + SPACING * (L > 2 ? L - 2 : 0), HIGHEST_UNIT = 970;  // biases are finite
    static constexpr bool SQUARE = TERMS == SQUARES;

    double total[L];
    int unit = 0, left = 0, misses = 0;
    uint32 floor = 0, ceiling = 0;

    __device__ Window() {
        if constexpr (ALWAYS_INSIDE<T>) {
            // Squares are below 2^32 = 2^(u+39) and multiples of 2^-48, thus of 2^(u−42), for u = −7. Values need one level:
            // 2^11 of them below 2^16 are at most 2^51 of their 2^-24.
            static_assert(L <= 2);
            start(-7);
            left = BUDGET;
        }
    }

    __device__ static double bias(int unit, int level) {
        return __longlong_as_double(int64(uint64(unit - level * SPACING + 52 + 1023) << 52 | 0x8000000000000ull));
    }

    __device__ void start(int at) {
        unit = at;
#pragma unroll
        for (int level = 0; level < L; ++level) total[level] = level < L - 1 ? bias(unit, level) : 0;
    }

    __device__ bool holds(uint32 smallest, uint32 largest) const { return smallest >= floor && largest < ceiling; }

    // Move to where the largest key is some binades below the top, if the tile fits there.
    template <class D>
    __device__ bool move(uint32 smallest, uint32 largest, D& digits) {
        const int field = largest >> KEY_SHIFT<T>, exponent = (field ? field : 1) - KEY_BIAS<T>;
        int at = SQUARE ? 2 * exponent - 29 : exponent - 30;
        at = at < LOWEST_UNIT ? LOWEST_UNIT : at > HIGHEST_UNIT ? HIGHEST_UNIT : at;
        // The exponents for which top and bottom hold: |x| < 2^(e+1), a multiple of 2^(e−PRECISION+1).
        constexpr int P = Format<T>::PRECISION;
        const int bottom = at - SPACING * (L - 2) - 42;
        int lowest = (SQUARE ? ceil_half(bottom) : bottom) + P - 1;
        const int highest = SQUARE ? floor_half(at + 37) : at + 38;
        if (SQUARE && L == 4 && lowest < -485) lowest = -485;  // both parts of the product are doubles: 2 (e−52) ≥ −1074
        const int low_field = lowest + KEY_BIAS<T>, high_field = highest + KEY_BIAS<T>;
        // Subnormals are multiples of what the smallest normal number is a multiple of.
        const uint32 new_floor = low_field <= 1 ? 0 : (uint32(low_field) << KEY_SHIFT<T>) - 1;
        const uint32 new_ceiling = uint32(high_field < KEY_LIMIT<T> ? high_field + 1 : KEY_LIMIT<T>) << KEY_SHIFT<T>;
        if (smallest < new_floor || largest >= new_ceiling) return false;
        if (ceiling) flush(digits);
        floor = new_floor;
        ceiling = new_ceiling;
        start(at);
        left = BUDGET;
        return true;
    }

    template <class D>
    __device__ void flush(D& digits) {
        digits.reserve(L);
#pragma unroll
        for (int level = 0; level < L; ++level) {
            const double sum = level < L - 1 ? total[level] - bias(unit, level) : total[level];  // exact
            if (sum != 0) digits.add(sum);
        }
        start(unit);
    }

    // Rounds x into a level; returns the remainder.
    __device__ double extract(int level, double x) {
        const double sum = total[level] + x, kept = sum - total[level];
        total[level] = sum;
        return x - kept;
    }

    __device__ void add(T element) {
        const double x = widen(element);
        if constexpr (SQUARE && L == 4) {
            // x² = product + error exactly (two-product). The product ends above 2^(u−80): level 3 takes what is left whole.
            const double product = x * x, error = __fma_rn(x, x, -product);
            total[2] += extract(1, extract(0, product));
            total[3] += extract(2, extract(1, error));
        } else if constexpr (SQUARE) {
            // x² is a double; fma saves making it.
            const double sum = __fma_rn(x, x, total[0]);
            double rest = __fma_rn(x, x, total[0] - sum);
            total[0] = sum;
            if constexpr (L == 3) rest = extract(1, rest);
            total[L - 1] += rest;
        } else {
            double rest = TERMS == MAGNITUDES ? fabs(x) : x;
#pragma unroll
            for (int level = 0; level < L - 1; ++level) rest = extract(level, rest);
            total[L - 1] += rest;
        }
    }
};

// What one thread does with its tiles: by the window, or element by element into its digits.
template <class T, int TERMS, int THREADS>
struct WindowSum {
    // Sums of 2^16 terms must be in reach; those of float64 are as long as they are finite.
    using D = Digits<LOWEST_TERM<T, TERMS>, HIGHEST_TERM<T, TERMS> + (sizeof(T) == 8 ? 0 : 16), THREADS>;
    static constexpr int BYTES = D::SIZE * sizeof(int64);
    static constexpr int PATIENCE = 3;  // slow tiles before the window moves: a flush costs about as much as one

    Specials<TERMS> specials;
    Window<T, TERMS> window;
    D digits;
    Total total;

    __device__ WindowSum(void* memory, const Total& total) : digits(static_cast<int64*>(memory)), total(total) {}

    template <int FLIGHT>
    __device__ void operator()(Tile<T, FLIGHT>& tile) {
        if constexpr (ALWAYS_INSIDE<T>) {
            if (!all_finite(tile)) specials.set_aside(tile);
            specials.look(tile);
        } else {
            Span<T, FLIGHT> span(tile);
            if (span.largest >= uint32(KEY_LIMIT<T>) << KEY_SHIFT<T>) {
                specials.set_aside(tile);
                span = Span<T, FLIGHT>(tile);
            }
            specials.look(tile);
            if (!window.holds(span.smallest, span.largest)) {
                if (span.largest == 0) return;
                const bool moved = (window.ceiling == 0 || ++window.misses > PATIENCE) &&
                                   window.move(span.smallest, span.largest, digits);
                if (!moved) return slow(tile);
                window.misses = 0;
            }
        }
        if (window.left < tile.SIZE) {
            window.flush(digits);
            window.left = window.BUDGET;
        }
        window.left -= tile.SIZE;
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) window.add(tile[at]);
    }

    template <int FLIGHT>
    __device__ void slow(const Tile<T, FLIGHT>& tile) {
        constexpr bool HALVES = sizeof(T) == 8 && TERMS == SQUARES;
        digits.reserve(tile.SIZE * (HALVES ? 2 : 1));
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const double x = widen(tile[at]);
            if constexpr (HALVES)
                add_square(x);
            else
                digits.add(TERMS == SQUARES ? x * x : TERMS == MAGNITUDES ? fabs(x) : x);  // x² is a double
        }
    }

    __device__ void add_square(double x) {
        const uint64 bits = __double_as_longlong(x);
        const uint32 field = uint32(bits >> 52) & 0x7ff;
        const uint64 significand = (bits & 0xfffffffffffffull) | (field ? 1ull << 52 : 0);
        const uint32 position = 2 * (field ? field - 1 : 0);
        const uint128 square = uint128(significand) * significand;
        digits.add(int64(uint64(square) & D::MASK), position);
        digits.add(int64(square >> DIGIT_BITS), position + DIGIT_BITS);
    }

    __device__ void finish() {
        if (ALWAYS_INSIDE<T> || window.ceiling) window.flush(digits);
        digits.fold(total, D::LOW + (TERMS == SQUARES ? 2148 : 1074));
    }
};
