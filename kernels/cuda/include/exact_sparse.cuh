// The end of a sum of few elements: nearly all digits of its threads are 0, and a fold that leaves those out takes half the time.
#pragma once
#include "exact_dot.cuh"
#include "exact_sums.cuh"

// As sum.terms.fold().
template <class T, int THREADS, bool MAGNITUDE, int L, int N, int BITS>
__device__ void fold_sparse(const ValueTerms<T, THREADS, MAGNITUDE, L, N, BITS>& terms, const Total& total) {
    terms.digits.template fold<true>(total, ValueTerms<T, THREADS, MAGNITUDE, L, N, BITS>::D::LOW + 1074);
}
template <class T, int THREADS, int N, int BITS>
__device__ void fold_sparse(const ProductTerms<T, THREADS, N, BITS>& terms, const Total& total) {
    terms.digits.template fold<true>(total, ProductTerms<T, THREADS, N, BITS>::D::LOW + 2148);
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
