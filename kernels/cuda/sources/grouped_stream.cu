// Exact sums and means of segments of any lengths as one stream of elements (include/grouped_stream.cuh).
#include "grouped_stream.cuh"

template <class T, int READS, int ENDS, bool MEAN, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) streamed(const T* data, const int64* offsets, uint64 count, uint64 total,
                                                            uint64 longest, uint64 share, T* values,
                                                            uint32* marked, uint64 finish, uint64 ddof, uint32 omit_nan, uint64* left) {
    extern __shared__ __align__(16) char memory[];
    sum_stream<T, READS, ENDS, MEAN>(data, Spans{offsets, count, total, 0, 0, longest, 1}, share,
                               Results<T>{values, marked, finish, ddof, omit_nan != 0}, left, memory);
}

// The segments that `streamed` left.
template <class T, int LANES, int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS) streamed_later(const T* data, const int64* offsets, uint64 count, uint64 total,
                                                          uint64 longest, T* values, uint32* marked,
                                                          uint64 finish, uint64 ddof, uint32 omit_nan, uint64* left) {
    sum_left<T, LANES, FLIGHT>(data, Spans{offsets, count, total, 0, 0, longest, 1},
                               Results<T>{values, marked, finish, ddof, omit_nan != 0}, left);
}
