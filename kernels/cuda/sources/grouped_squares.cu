// Exact sums of squares, their roots, variances and deviations of many values in one read: of rows and other spans of neighbouring
// elements, and of columns. Each is rounded once, to nearest, ties to even (include/grouped_spread.cuh). Values of which that is not
// sure are marked, and added up as whole arrays are.
#include "grouped_square_columns.cuh"

// For sm_120 the compiler takes so few registers otherwise that it spills some.
#if __CUDA_ARCH__ >= 1200
constexpr int LEAST_BLOCKS = 4;
#else
constexpr int LEAST_BLOCKS = 0;
#endif

template <class T, bool VALUED, int LANES, int SPANS, bool VECTORS, int FLIGHT, int ROUNDS, int THREADS>
__global__ void __launch_bounds__(THREADS, LEAST_BLOCKS) square_spans(const T* data, const int64* offsets, uint64 count, uint64 total,
                                                        uint64 length, uint64 longest, T* values, uint32* marked, uint64 finish,
                                                        uint64 ddof, uint32 omit_nan) {
    const ::Spans spans{offsets, count, total, length, length, longest, 1};
    const SpreadResults<T> results{values, marked, finish, ddof, omit_nan != 0};
    SquareSpans<T, VALUED, LANES, SPANS, VECTORS, FLIGHT, ROUNDS>{data, spans, results}.run();
}

template <class T, bool VALUED, bool VECTORS, int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS) square_columns(const T* data, uint64 vectors, uint32 width, uint64 period, uint32 tiles,
                                                          uint64 periods, uint32 once, uint32 bits, uint64 size,
                                                          double* doubles, uint32* words) {
    extern __shared__ __align__(16) char memory[];
    sum_square_columns<T, VALUED, VECTORS, FLIGHT>(data, ColumnsOf{vectors, width, period, tiles, periods, 0}, once, int(bits),
                                                   PartsInMemory<T, VALUED>{doubles, words, size}, memory);
}

template <class T, int THREADS>
__global__ void __launch_bounds__(THREADS) square_pairs(const T* data, uint64 width, T* values, uint32* marked, uint64 finish, uint64 ddof,
                                                        uint32 omit_nan) {
    half_distances(data, width, SpreadResults<T>{values, marked, finish, ddof, omit_nan != 0});
}

template <class T, bool VALUED, int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS) square_parts(const T* data, uint64 count, uint64 length, uint64 part, uint32 parts,
                                                        uint32 bits, uint64 size, double* doubles, uint32* words) {
    const ::Spans spans{nullptr, count * parts, count * length, length, part, part, parts};
    sum_square_parts<T, VALUED, FLIGHT>(data, spans, int(bits), PartsInMemory<T, VALUED>{doubles, words, size});
}

template <class T, bool VALUED, int LANES, int THREADS>
__global__ void __launch_bounds__(THREADS) close_columns(double* doubles, uint32* words, uint64 size, uint64 width, uint64 height,
                                                         uint32 bits, uint32 threads, uint32 sums, T* values, uint32* marked, uint64 finish,
                                                         uint64 ddof, uint32 omit_nan) {
    close_square_columns<T, VALUED, LANES>(PartsInMemory<T, VALUED>{doubles, words, size}, width, height,
                                           Counted{int(bits), int(threads), int(sums)},
                                           SpreadResults<T>{values, marked, finish, ddof, omit_nan != 0});
}
