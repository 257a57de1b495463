// Windows of products x · y. The exponent e of a product is the sum of those of x and y; it is below 2^(e+2). Each window
// says which exponents it holds with a given top (`range`), and which of them at less cost (`narrow`).
#pragma once
#include "exact_format.cuh"
#include "exact_window.cuh"

constexpr int TOGETHER = 32;  // narrow products that are added up before a window takes them, at most

// Products of up to 48 bits, which are doubles. Narrow ones of float32 need two levels of the three.
//
// Narrow ones of bfloat16, of 16 bits, are added up plainly before the window takes them: TOGETHER of them, multiples of
// 2^(e−14) and below 2^(e+2), are at most 2^53 of the least of these multiples if their exponents are no more than
// 53 − 5 − 2 − 14 = 32 apart. Such a sum may be larger than a term, but biased totals move by what is added to them in all,
// in however many additions: the budget counts the terms, not the sum. Its remainder is one as any other.
template <class T, int N>
struct ShortProducts {
    static constexpr int BITS = 2 * (Format<T>::PRECISION - 1);
    static constexpr bool PLAIN = is_same<T, bfloat16>;
    using W = Window<sizeof(T) == 4 ? 3 : 2, BITS, 2, N>;
    W window;
    double plain = 0;  // what the window does not have yet

    static __device__ Range range(int top) { return W::range(W::unit_for(top)); }
    static __device__ Range narrow(int top) {
        const Range all = range(top);
        return all & (PLAIN ? Range{all.highest - (53 - 5 - 2 - BITS), all.highest} : W::range(W::unit_for(top), 2));
    }
    __device__ void start(int top) { window.start(W::unit_for(top)); }
    template <class D>
    __device__ void flush(D& digits) {
        window.flush(digits);
    }
    __device__ void add(double x, double y) { window.add_product(x, y); }
    __device__ void add_narrow(double x, double y) {
        if constexpr (PLAIN)
            plain = __fma_rn(x, y, plain);
        else
            window.template add_product<2>(x, y);
    }
    __device__ void collect() {
        if constexpr (PLAIN) {
            window.add(plain);
            plain = 0;
        }
    }
};

// Products of float64, of 106 bits, as product + error (two-product), each with a window of its own. The product is a
// multiple of 2^(e−52) because |x y| ≥ 2^e; the error is one of 2^(e−104), and at most half a last place: 2^(e−52). It is a
// double if e − 104 ≥ −1074. Narrow ones need two levels of the three.
template <class T, int N>
struct LongProducts {
    using P = Window<3, 52, 2, N>;
    using E = Window<3, 104, -52, N>;
    P products;
    E errors;

    static __device__ Range range(int top, int depth = 3) {
        const Range both = P::range(P::unit_for(top), depth) & E::range(E::unit_for(top), depth);
        return both & Range{-970, 1 << 20};
    }
    static __device__ Range narrow(int top) { return range(top) & range(top, 2); }
    __device__ void start(int top) {
        products.start(P::unit_for(top));
        errors.start(E::unit_for(top));
    }
    template <class D>
    __device__ void flush(D& digits) {
        products.flush(digits);
        errors.flush(digits);
    }
    template <int DEPTH = 3>
    __device__ void add(double x, double y) {
        const double product = x * y, error = __fma_rn(x, y, -product);
        products.template add<DEPTH>(product);
        errors.template add<DEPTH>(error);
    }
    __device__ void add_narrow(double x, double y) { add<2>(x, y); }
    __device__ void collect() {}
};

template <class T, int N>
struct ProductsOf {
    using Type = ShortProducts<T, N>;
};
template <int N>
struct ProductsOf<float64, N> {
    using Type = LongProducts<float64, N>;
};
