// The terms of a sum (values, magnitudes, products, squares, or values and squares together) with their windows and,
// behind those, their digits. Each says which exponents of elements a window with a given top holds (`range`) and, if it
// NARROWS, which of those at less cost (`narrow`); moves it (`move`), and adds elements that lie in the first (`add`), in the
// second (`add_narrow`, with `collect` after every TOGETHER at most) or anywhere (`add_slowly`).
#pragma once
#include "exact_products.cuh"

// Whether all finite elements lie in one window: float16, whose exponents are −14 … 15.
template <class T>
constexpr bool ALWAYS_INSIDE = is_same<T, float16>;

// Sums of 2^16 terms must be in reach of the digits; those of float64 are as long as they are finite.
template <class T>
constexpr int MARGIN = sizeof(T) == 8 ? 0 : 16;

// Fewer than 2^N terms are added between two flushes. A small N makes windows wide; a flush takes some ten instructions for
// each level.
constexpr int SELDOM = 11;
template <class T>
constexpr int OFTEN = ALWAYS_INSIDE<T> ? SELDOM : 8;

template <class T>
constexpr int VALUE_LEVELS = is_same<T, float16> ? 1 : sizeof(T) == 8 ? 3 : 2;

template <class T, int THREADS, bool MAGNITUDE, int L = VALUE_LEVELS<T>, int N = SELDOM, int BITS = 52>
struct ValueTerms {
    using F = Format<T>;
    using W = Window<L, F::PRECISION - 1, 1, N>;
    using D = Digits<F::LOWEST, F::HIGHEST + MARGIN<T>, THREADS, BITS>;
    static constexpr int BYTES = D::SIZE * sizeof(int64), BUDGET = (1 << N) - 1;
    static constexpr bool NARROWS = false;  // alone, values are added as fast as they are read
    static constexpr bool TWO_SUMS = false;
    static constexpr int DEPTH = L > (sizeof(T) == 8 ? 2 : 1) ? L - 1 : L;  // of narrow values
    W window;
    D digits;

    __device__ explicit ValueTerms(int64* memory) : digits(memory) { move(15); }  // all of float16

    static __device__ Range range(int top) { return W::range(W::unit_for(top)); }
    static __device__ Range narrow(int top) { return range(top) & W::range(W::unit_for(top), DEPTH); }
    __device__ void move(int top) { window.start(W::unit_for(top)); }
    __device__ void flush() { window.flush(digits); }
    __device__ void reserve(int elements) { digits.reserve(elements); }
    __device__ void add(double x) { window.add(MAGNITUDE ? fabs(x) : x); }
    __device__ void add_narrow(double x) { window.template add<DEPTH>(MAGNITUDE ? fabs(x) : x); }
    __device__ void collect() {}
    __device__ void add_slowly(double x) { digits.add(MAGNITUDE ? fabs(x) : x); }
    __device__ void fold(const Total& total) const { digits.fold(total, D::LOW + 1074); }
};

// Products x · y; their exponents are the sums of those of x and y.
template <class T, int THREADS, int N = SELDOM, int BITS = 52>
struct ProductTerms {
    using F = Format<T>;
    static constexpr bool WIDE = sizeof(T) == 8;  // than a double
    using W = typename ProductsOf<T, N>::Type;
    using D = Digits<2 * F::LOWEST, 2 * F::HIGHEST + MARGIN<T>, THREADS, BITS>;
    static constexpr int BYTES = D::SIZE * sizeof(int64), BUDGET = (1 << N) - 1;
    W window;
    D digits;

    __device__ explicit ProductTerms(int64* memory) : digits(memory) { move(30); }  // all of float16

    static __device__ Range range(int top) { return W::range(top); }
    static __device__ Range narrow(int top) { return W::narrow(top); }
    __device__ void move(int top) { window.start(top); }
    __device__ void flush() { window.flush(digits); }
    __device__ void reserve(int elements) { digits.reserve(elements * (WIDE ? 2 : 1)); }
    __device__ void add(double x, double y) { window.add(x, y); }
    __device__ void add_narrow(double x, double y) { window.add_narrow(x, y); }
    __device__ void collect() { window.collect(); }
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

template <class T, int THREADS, int N = OFTEN<T>, int BITS = 52>
struct SquareTerms : ProductTerms<T, THREADS, N, BITS> {
    using Products = ProductTerms<T, THREADS, N, BITS>;
    using Products::Products;
    static constexpr bool NARROWS = true, TWO_SUMS = false;

    // The exponents e for which 2e is among those of products.
    static __device__ Range halves(const Range& products) { return {(products.lowest + 1) >> 1, products.highest >> 1}; }
    static __device__ Range range(int top) { return halves(Products::range(2 * top)); }
    static __device__ Range narrow(int top) { return halves(Products::narrow(2 * top)); }
    __device__ void move(int top) { Products::move(2 * top); }
    __device__ void add(double x) { Products::add(x, x); }
    __device__ void add_narrow(double x) { Products::add_narrow(x, x); }
    __device__ void add_slowly(double x) { Products::add_slowly(x, x); }
};
