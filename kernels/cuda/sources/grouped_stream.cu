// Exact sums and means of segments of any lengths as one stream of elements (include/grouped_stream.cuh), and of pairs.
#include "grouped_pairs.cuh"
#include "grouped_stream.cuh"

template <class T, int READS, int ENDS, bool MEAN, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) streamed(const T* data, const int64* offsets, uint64 count, uint64 total,
                                                            uint64 length, uint64 longest, uint64 share, T* values,
                                                            uint32* marked, uint64 divisor, uint32 omit_nan, uint64* left) {
    extern __shared__ __align__(16) char memory[];
    sum_stream<T, READS, ENDS, MEAN>(data, Spans{offsets, count, total, length, length, longest, 1}, share,
                               Results<T>{values, marked, divisor, omit_nan != 0}, left, memory);
}

// The segments that `streamed` left.
template <class T, int LANES, int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS) streamed_later(const T* data, const int64* offsets, uint64 count, uint64 total,
                                                          uint64 length, uint64 longest, T* values, uint32* marked,
                                                          uint64 divisor, uint32 omit_nan, uint64* left) {
    sum_left<T, LANES, FLIGHT>(data, Spans{offsets, count, total, length, length, longest, 1},
                               Results<T>{values, marked, divisor, omit_nan != 0}, left);
}

template <int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS) double_pairs(const float64* data, uint64 count, float64* values, uint32* marked,
                                                        uint64 divisor, uint32 omit_nan) {
    sum_pairs<FLIGHT>(data, count, Results<float64>{values, marked, divisor, omit_nan != 0});
}
