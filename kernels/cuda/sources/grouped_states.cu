// Exact sums of floats of any terms for many values: each has a total of its own (include/exact_total.cuh), which the host rounds.
#include "grouped_totals.cuh"

// `parts` blocks for each value from number `first` on; totals must be zero before. The launch provides BYTES of shared memory
// a thread.
template <class T, int TERMS, int THREADS, int BYTES>
__global__ void __launch_bounds__(THREADS) totals(const T* data, const int64* offsets, uint64 outer, uint64 stride,
                                                  uint64 count, uint64 total, uint64 first, uint32 parts, uint32 limbs,
                                                  uint64* words) {
    static_assert(BYTES == Sum<T, TERMS, THREADS>::BYTES);
    extern __shared__ __align__(16) char memory[];
    const uint64 which = blockIdx.x / parts;
    add_members<Sum<T, TERMS, THREADS>, T, THREADS>(data, Members{offsets, outer, stride, count, total}, first + which,
                                                 blockIdx.x % parts, parts, words + which * limbs, memory);
}
