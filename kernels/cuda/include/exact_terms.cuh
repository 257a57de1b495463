// The terms of a sum (values, magnitudes, products, squares, or values and squares together) with their windows and,
// behind those, their digits. Each says which exponents of elements a window with a given top holds (`range`), moves it
// (`move`), and adds elements that lie in it (`add`) or anywhere (`add_slowly`).
#pragma once
#include "exact_format.cuh"
#include "exact_window.cuh"

// Whether all finite elements lie in one window: float16, whose values and products are multiples of 2^-48 below 2^32.
template <class T>
constexpr bool ALWAYS_INSIDE = is_same<T, float16>;

// Sums of 2^16 terms must be in reach of the digits; those of float64 are as long as they are finite.
template <class T>
constexpr int MARGIN = sizeof(T) == 8 ? 0 : 16;

template <class T>
constexpr int VALUE_LEVELS = is_same<T, float16> ? 1 : sizeof(T) == 8 ? 3 : 2;

template <class T, int THREADS, bool MAGNITUDE, int L = VALUE_LEVELS<T>, int BITS = 52>
struct ValueTerms {
    using F = Format<T>;
    using W = Window<L, F::PRECISION - 1, 1>;
    using D = Digits<F::LOWEST, F::HIGHEST + MARGIN<T>, THREADS, BITS>;
    static constexpr int BYTES = D::SIZE * sizeof(int64), BUDGET = ADDITIONS;
    static constexpr int EVERYWHERE = -22;  // the unit for which float16 fits
    W window;
    D digits;

    __device__ explicit ValueTerms(int64* memory) : digits(memory) { window.start(EVERYWHERE); }

    static __device__ Range range(int top) { return W::range(W::unit_for(top)); }
    __device__ void move(int top) { window.start(W::unit_for(top)); }
    __device__ void flush() { window.flush(digits); }
    __device__ void reserve(int elements) { digits.reserve(elements); }
    __device__ void add(double x) { window.add(MAGNITUDE ? fabs(x) : x); }
    __device__ void add_slowly(double x) { digits.add(MAGNITUDE ? fabs(x) : x); }
    __device__ void fold(const Total& total) const { digits.fold(total, D::LOW + 1074); }
};

// Products x · y; their exponents are the sums of those of x and y.
template <class T, int THREADS, int BITS = 52>
struct ProductTerms {
    using F = Format<T>;
    static constexpr bool WIDE = sizeof(T) == 8;  // than a double
    static constexpr int L = WIDE ? 4 : sizeof(T) == 4 ? 3 : 2;
    using W = Window<L, 2 * (F::PRECISION - 1), 2>;
    using D = Digits<2 * F::LOWEST, 2 * F::HIGHEST + MARGIN<T>, THREADS, BITS>;
    static constexpr int BYTES = D::SIZE * sizeof(int64), BUDGET = ADDITIONS / (WIDE ? 2 : 1);
    static constexpr int EVERYWHERE = -7;  // below 2^(u+39) = 2^32, multiples of 2^(u−42) = 2^-49: all of float16
    W window;
    D digits;

    __device__ explicit ProductTerms(int64* memory) : digits(memory) { window.start(EVERYWHERE); }

    static __device__ Range range(int top) {
        Range found = W::range(W::unit_for(top));
        if (WIDE && found.lowest < -970) found.lowest = -970;  // the error's last place, 2^(e−104), must be a double's
        return found;
    }
    __device__ void move(int top) { window.start(W::unit_for(top)); }
    __device__ void flush() { window.flush(digits); }
    __device__ void reserve(int elements) { digits.reserve(elements * (WIDE ? 2 : 1)); }
    __device__ void add(double x, double y) {
        if constexpr (WIDE)
            window.add_wide_product(x, y);
        else
            window.add_product(x, y);
    }
    __device__ void add_slowly(double x, double y) {
        if constexpr (WIDE) {
            const Significand a(x), b(y);
            const uint128 product = uint128(a.magnitude) * b.magnitude;
            const int64 low = int64(uint64(product) & D::MASK), high = int64(product >> BITS);
            const bool negative = a.negative != b.negative;
            digits.add(negative ? -low : low, a.position + b.position);
            digits.add(negative ? -high : high, a.position + b.position + BITS);
        } else {
            digits.add(x * y);  // a double
        }
    }
    __device__ void fold(const Total& total) const { digits.fold(total, D::LOW + 2148); }
};

template <class T, int THREADS, int BITS = 52>
struct SquareTerms : ProductTerms<T, THREADS, BITS> {
    using Products = ProductTerms<T, THREADS, BITS>;
    using Products::Products;

    static __device__ Range range(int top) {
        const Range products = Products::range(2 * top);
        return {(products.lowest + 1) >> 1, products.highest >> 1};  // the exponents e for which 2e is among those
    }
    __device__ void move(int top) { Products::move(2 * top); }
    __device__ void add(double x) { Products::add(x, x); }
    __device__ void add_slowly(double x) { Products::add_slowly(x, x); }
};

// Values and squares, in one read of the elements. A window of squares is so narrow (33 binades of bfloat16, 38 of float32,
// 28 of float64) that values there need a level less: 2^11 bfloat16 of 34 binades are below 2^53 units of one double.
// The digits of float64 have the larger base, with which they fit 256 threads.
template <class T, int THREADS>
struct MomentTerms {
    static constexpr bool ONE = is_same<T, bfloat16>;
    static constexpr int BITS = sizeof(T) == 8 ? 57 : 52;
    using Values = ValueTerms<T, THREADS, false, ONE ? 1 : sizeof(T) == 8 ? 2 : VALUE_LEVELS<T>, BITS>;
    using Squares = SquareTerms<T, THREADS, BITS>;
    static constexpr int BYTES = Values::BYTES + Squares::BYTES;
    static constexpr int BUDGET = Values::BUDGET < Squares::BUDGET ? Values::BUDGET : Squares::BUDGET;
    Values values;
    Squares squares;

    __device__ explicit MomentTerms(int64* memory) : values(memory), squares(memory + Values::D::SIZE * THREADS) {}

    static __device__ Range range(int top) {
        const Range of_squares = Squares::range(top);
        if constexpr (ONE) {
            static_assert(ADDITIONS == 1 << 11);  // 2^11 · 2^(highest+1) ≤ 2^53 · 2^(lowest−7)
            const int lowest = of_squares.highest - 34;
            return {of_squares.lowest > lowest ? of_squares.lowest : lowest, of_squares.highest};
        }
        const Range of_values = Values::range(top);
        return {of_squares.lowest > of_values.lowest ? of_squares.lowest : of_values.lowest,
                of_squares.highest < of_values.highest ? of_squares.highest : of_values.highest};
    }
    __device__ void move(int top) {
        values.move(top);
        squares.move(top);
    }
    __device__ void flush() {
        values.flush();
        squares.flush();
    }
    __device__ void reserve(int elements) {
        values.reserve(elements);
        squares.reserve(elements);
    }
    __device__ void add(double x) {
        values.add(x);
        squares.add(x);
    }
    __device__ void add_slowly(double x) {
        values.add_slowly(x);
        squares.add_slowly(x);
    }
    __device__ void fold(const Total& total) const {
        values.fold(total);
        squares.fold(total.second());
    }
};
