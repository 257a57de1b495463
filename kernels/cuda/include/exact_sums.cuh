// Which sum serves which terms of which dtype.
#pragma once
#include "exact_buckets.cuh"
#include "exact_dot.cuh"
#include "exact_window_sum.cuh"

template <class T, int TERMS, int THREADS>
struct SumOf {
    using Type = WindowSum<T, TERMS, ValueTerms<T, THREADS, TERMS == MAGNITUDES>>;
};
template <class T, int THREADS>
struct SumOf<T, SQUARES, THREADS> {
    using Type = WindowSum<T, SQUARES, SquareTerms<T, THREADS>>;
};
template <class T, int THREADS>
struct SumOf<T, MOMENTS, THREADS> {
    using Type = WindowSum<T, VALUES, MomentTerms<T, THREADS>>;
};
template <class T, int THREADS>
struct SumOf<T, PRODUCTS, THREADS> {
    using Type = DotSum<T, THREADS>;
};

// Buckets take any exponents at one speed; float64 and products are too wide for them.
template <int THREADS>
struct SumOf<float32, VALUES, THREADS> {
    using Type = BucketSum<float32, VALUES, THREADS>;
};
template <int THREADS>
struct SumOf<float32, MAGNITUDES, THREADS> {
    using Type = BucketSum<float32, MAGNITUDES, THREADS>;
};
template <int THREADS>
struct SumOf<bfloat16, VALUES, THREADS> {
    using Type = BucketSum<bfloat16, VALUES, THREADS>;
};
template <int THREADS>
struct SumOf<bfloat16, MAGNITUDES, THREADS> {
    using Type = BucketSum<bfloat16, MAGNITUDES, THREADS>;
};

template <class T, int TERMS, int THREADS>
using Sum = typename SumOf<T, TERMS, THREADS>::Type;
