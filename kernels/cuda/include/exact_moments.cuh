// Values and squares in one read of the elements: both are terms as in exact_terms.cuh, and their windows move together.
#pragma once
#include "exact_terms.cuh"

// A window of squares is so narrow (37 binades of bfloat16, 43 of float32) that values of bfloat16 there need one level only,
// without a bias, which holds 38. Those of float64 keep their three, of which narrow ones need two: two would hold 35.
// With nine levels to flush, three of values, of squares and of their errors, float64 does it half as often.
// The digits of float64 have the larger base, with which they fit 256 threads.
template <class T, int THREADS>
struct MomentTerms {
    static constexpr int LEVELS = is_same<T, bfloat16> ? 1 : VALUE_LEVELS<T>;
    static constexpr int N = is_same<T, float64> ? OFTEN<T> + 1 : OFTEN<T>;
    static constexpr int BITS = sizeof(T) == 8 ? 57 : 52;
    using Values = ValueTerms<T, THREADS, false, LEVELS, N, BITS>;
    using Squares = SquareTerms<T, THREADS, N, BITS>;
    static constexpr int BYTES = Values::BYTES + Squares::BYTES, BUDGET = Values::BUDGET;
    static constexpr bool NARROWS = true;
    static constexpr bool TWO_SUMS = true;  // their code is long: one more loop would cost more than it saves
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
