// Exact sums of floats of any terms for many values: each has a total of its own (include/exact_total.cuh), which `finished` rounds.
#include "exact_members.cuh"
#include "exact_sums.cuh"
#include "grouped_finish.cuh"

// `parts` blocks for each value from number `first` on, or for each of those that are `listed`, unless that is null; totals must be zero before. The launch provides BYTES of shared memory
// a thread.
template <class T, int TERMS, int THREADS, int BYTES>
__global__ void __launch_bounds__(THREADS, 4) totals(const T* data, const T* other, const int64* offsets, uint64 outer, uint64 stride,
                                                  uint64 count, uint64 total, uint64 first, uint32 parts, uint32 limbs,
                                                  uint64* words, const int64* listed) {
    static_assert(BYTES == Sum<T, TERMS, THREADS>::BYTES);
    extern __shared__ __align__(16) char memory[];
    const uint64 which = blockIdx.x / parts, value = listed ? listed[which] : first + which;
    add_members<Sum<T, TERMS, THREADS>, THREADS>(TermsFrom<T, TERMS>::of(data, other), Members{offsets, outer, stride, count, total}, value,
                                                 blockIdx.x % parts, parts, words + which * limbs, memory);
}

// One warp a block; the launch provides ROOM bytes of shared memory a thread.
template <class T, int TERMS, int ROOM>
__global__ void __launch_bounds__(32) finished(uint64* words, const int64* offsets, uint64 outer, uint64 stride, uint64 count,
                                               uint64 total, uint64 first, uint64 values, uint64 finish, uint64 ddof,
                                               uint32 omit_nan, T* out, uint32* omitted,
                                               const int64* listed) {
    static_assert(ROOM == TotalsOf<TERMS>::ROOM * 4);
    extern __shared__ __align__(16) char memory[];
    finish_values<T, TERMS>(words, Members{offsets, outer, stride, count, total}, first, values, finish, ddof, omit_nan != 0, out,
                            omitted, listed, memory);
}
