// Exact sums of the products of two arrays, as in exact_window_sum.cuh, but for pairs of tiles. The exponents of the products
// of a pair of tiles lie between the sums of the smallest and of the largest of each.
#pragma once
#include "exact_window_sum.cuh"

// The NaNs, infinities and −0 among products. A pair with a NaN is counted and may be left out; ∞ · 0 is a NaN that stays.
struct PairSpecials {
    uint32 flags = 0, nans = 0;

    template <class T, int FLIGHT>
    __device__ void look(const Tile<T, FLIGHT>& x, const Tile<T, FLIGHT>& y) {
        if (flags & NOT_NEGATIVE_ZERO) return;
        bool other = false;
#pragma unroll
        for (int at = 0; at < x.SIZE; ++at) {
            const Bits<T> a = bits_of(x[at]), b = bits_of(y[at]);
            const bool zero = (a & Bits<T>(~SIGN<T>)) == 0 || (b & Bits<T>(~SIGN<T>)) == 0;
            other |= !zero || ((a ^ b) & SIGN<T>) == 0;
        }
        if (other) flags |= NOT_NEGATIVE_ZERO;
    }

    // Leaves −0 · +0 in the places of pairs whose product is not finite.
    template <class T, int FLIGHT>
    __device__ void set_aside(Tile<T, FLIGHT>& x, Tile<T, FLIGHT>& y) {
#pragma unroll
        for (int at = 0; at < x.SIZE; ++at) {
            const Bits<T> a = bits_of(x[at]), b = bits_of(y[at]);
            const Bits<T> large = a & Bits<T>(~SIGN<T>), other = b & Bits<T>(~SIGN<T>);
            if (large < ENDLESS<T> && other < ENDLESS<T>) continue;
            if (large > ENDLESS<T> || other > ENDLESS<T>)
                ++nans;
            else if (large == 0 || other == 0)
                flags |= NAN_PRODUCT;
            else
                flags |= (a ^ b) & SIGN<T> ? NEGATIVE_INFINITY : POSITIVE_INFINITY;
            x.make_zero(at, true);
            y.make_zero(at, false);
        }
    }
};

template <class T, int THREADS>
struct DotSum {
    using Added = ProductTerms<T, THREADS>;
    static constexpr int BYTES = Added::BYTES;
    PairSpecials specials;
    Total total;
    Added terms;
    Range window = {1, 0};
    int left = Added::BUDGET, misses = PATIENCE;

    __device__ DotSum(char* memory, const Total& total) : total(total), terms(reinterpret_cast<int64*>(memory)) {}

    template <int FLIGHT>
    __device__ void operator()(TilePair<T, FLIGHT>& pair) {
        auto &x = pair.x, &y = pair.y;
        bool inside = true, far = false;
        if constexpr (ALWAYS_INSIDE<T>) {
            if (!all_finite(x) || !all_finite(y)) specials.set_aside(x, y);
            specials.look(x, y);
        } else {
            Extent<T> of_x = extent_of(x), of_y = extent_of(y);
            if (!of_x.all_finite() || !of_y.all_finite()) {
                specials.set_aside(x, y);
                of_x = extent_of(x);
                of_y = extent_of(y);
            }
            specials.look(x, y);
            const Range exponents{of_x.lowest_factor() + of_y.lowest_factor(), of_x.highest() + of_y.highest()};
            if (!window.holds(exponents)) {
                if (of_x.all_zero() || of_y.all_zero()) return;
                inside = move(exponents);
                far = far_apart<Added>(exponents);
            }
        }
        if (left < x.SIZE) {
            terms.flush();
            left = Added::BUDGET;
        }
        left -= x.SIZE;
        if (far) return add_far(x, y);
        if (!inside) return add_each(x, y);
#pragma unroll
        for (int at = 0; at < x.SIZE; ++at) terms.add(widen(x[at]), widen(y[at]));
    }

    __device__ bool move(const Range& exponents) {
        int top;
        if (misses++ < PATIENCE || !window_around<Added>(exponents, top)) return false;
        terms.flush();
        terms.move(top);
        window = Added::range(top);
        left = Added::BUDGET;
        misses = 0;
        return true;
    }

    template <int FLIGHT>
    __device__ void add_far(const Tile<T, FLIGHT>& x, const Tile<T, FLIGHT>& y) {
        terms.reserve(x.SIZE);
#pragma unroll
        for (int at = 0; at < x.SIZE; ++at) terms.add_slowly(widen(x[at]), widen(y[at]));
    }

    template <int FLIGHT>
    __device__ void add_each(const Tile<T, FLIGHT>& x, const Tile<T, FLIGHT>& y) {
        terms.reserve(x.SIZE);
#pragma unroll
        for (int at = 0; at < x.SIZE; ++at) {
            const Wide<T> a = widen(x[at]), b = widen(y[at]);
            const uint32 key = key_of(a), other = key_of(b);
            if (window.holds({factor_of<T>(key) + factor_of<T>(other), exponent_of<T>(key) + exponent_of<T>(other)}))
                terms.add(a, b);
            else
                terms.add_slowly(a, b);
        }
    }

    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        terms.flush();
        terms.fold(total);
    }
};
