// Values and squares, in one read of the elements: as the terms of exact_terms.cuh, whose windows move together.
#pragma once
#include "exact_terms.cuh"

// A window of squares is so narrow (37 binades of bfloat16, 43 of float32, 40 of float64) that values there need a level
// less: two for float64, which hold 37 binades, and one without a bias for bfloat16, which holds 38.
// The digits of float64 have the larger base, with which they fit 256 threads.
template <class T, int THREADS>
struct MomentTerms {
    static constexpr int LEVELS = VALUE_LEVELS<T> - (is_same<T, bfloat16> || is_same<T, float64> ? 1 : 0);
    static constexpr int BITS = sizeof(T) == 8 ? 57 : 52;
    using Values = ValueTerms<T, THREADS, false, LEVELS, OFTEN<T>, BITS>;
    using Squares = SquareTerms<T, THREADS, OFTEN<T>, BITS>;
    static constexpr int BYTES = Values::BYTES + Squares::BYTES, BUDGET = Values::BUDGET;
    static constexpr bool NARROWS = true;
    static_assert(BUDGET == Squares::BUDGET);
    Values values;
    Squares squares;

    __device__ explicit MomentTerms(int64* memory) : values(memory), squares(memory + Values::D::SIZE * THREADS) {}

    static __device__ Range range(int top) { return Values::range(top) & Squares::range(top); }
    static __device__ Range narrow(int top) { return Values::narrow(top) & Squares::narrow(top); }
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
    __device__ void add_narrow(double x) {
        values.add_narrow(x);
        squares.add_narrow(x);
    }
    __device__ void collect() { squares.collect(); }
    __device__ void add_slowly(double x) {
        values.add_slowly(x);
        squares.add_slowly(x);
    }
    __device__ void fold(const Total& total) const {
        values.fold(total);
        squares.fold(total.second());
    }
};
