// The end of a sum of few elements: nearly all digits of its threads are 0, and a fold that leaves those out takes half the time.
#pragma once
#include "exact_dot.cuh"
#include "exact_sums.cuh"

// As Digits::fold.
template <int LOWEST, int HIGHEST, int THREADS, int BITS>
__device__ void fold_sparse(const Digits<LOWEST, HIGHEST, THREADS, BITS>& digits, const Total& total, int position) {
    using D = Digits<LOWEST, HIGHEST, THREADS, BITS>;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    for (int k = threadIdx.x / 32; k < D::SIZE; k += THREADS / 32) {
        int64 low = 0, high = 0, any = 0;
#pragma unroll
        for (int thread = lane; thread < THREADS; thread += 32) {
            const int64 digit = digits.memory[k * THREADS + thread];
            low += uint32(digit);
            high += digit >> 32;
            any |= digit;
        }
        if (__all_sync(~0u, any == 0)) continue;
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            low += __shfl_down_sync(~0u, low, distance);
            high += __shfl_down_sync(~0u, high, distance);
        }
        if (lane == 0) total.add((int128(high) << 32) + low, position + k * BITS);
    }
}

template <class T, int THREADS, bool MAGNITUDE, int L, int N, int BITS>
__device__ void fold_sparse(const ValueTerms<T, THREADS, MAGNITUDE, L, N, BITS>& terms, const Total& total) {
    fold_sparse(terms.digits, total, ValueTerms<T, THREADS, MAGNITUDE, L, N, BITS>::D::LOW + 1074);
}
template <class T, int THREADS, int N, int BITS>
__device__ void fold_sparse(const ProductTerms<T, THREADS, N, BITS>& terms, const Total& total) {
    fold_sparse(terms.digits, total, ProductTerms<T, THREADS, N, BITS>::D::LOW + 2148);
}
template <class T, int THREADS>
__device__ void fold_sparse(const MomentTerms<T, THREADS>& terms, const Total& total) {
    fold_sparse(terms.values, total);
    fold_sparse(terms.squares, total.second());
}

// Adds the sum of a block to its total, as sum.finish() does.
template <class T, int TERMS, class Added>
__device__ void finish_sparse(WindowSum<T, TERMS, Added>& sum) {
    sum.total.note(sum.specials.flags, sum.specials.nans);
    sum.terms.flush();
    fold_sparse(sum.terms, sum.total);
}
template <class T, int THREADS>
__device__ void finish_sparse(DotSum<T, THREADS>& sum) {
    sum.total.note(sum.specials.flags, sum.specials.nans);
    sum.terms.flush();
    fold_sparse(sum.terms, sum.total);
}
template <class T, int TERMS, int THREADS>
__device__ void finish_sparse(BucketSum<T, TERMS, THREADS>& sum) {
    sum.finish();
}
