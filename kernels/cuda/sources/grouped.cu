// Exact sums and means of many values in one launch: of rows and other spans of neighbouring elements, and of columns. Each is
// rounded once, to nearest, ties to even.
//
// Values of few elements are added up in registers, by a thread or some lanes of a warp; longer ones by a warp, or by several
// warps or blocks, which leave doubles for a second launch (grouped_window.cuh). What their windows do not hold is added up
// by wide_sums and rounded by round_totals.
#include "grouped_columns.cuh"
#include "grouped_rows.cuh"
#include "grouped_wide.cuh"

template <class T, class Out, int LANES, int ROWS, int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS) rows(const T* data, uint64 count, uint32 length, Out* values, uint32* marked,
                                                uint64 divisor, uint32 omit_nan) {
    sum_rows<T, Out, LANES, ROWS, FLIGHT>(RowsOf<T>{data, count, length}, Results<Out>{values, marked, divisor, omit_nan != 0});
}

template <int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS) pairs(const float32* data, uint64 count, float32* values, uint32* marked,
                                                 uint64 divisor, uint32 omit_nan) {
    sum_pairs<FLIGHT>(data, count, Results<float32>{values, marked, divisor, omit_nan != 0});
}

template <class T, class Out, int LANES, bool VECTORS, int FLIGHT, bool PARTS, int THREADS>
__global__ void __launch_bounds__(THREADS) spans(const T* data, const int64* offsets, uint64 count, uint64 total,
                                                 uint64 length, uint64 part, uint64 longest, uint32 parts, Out* values,
                                                 uint32* marked, uint64 divisor, uint32 omit_nan, double* stored,
                                                 uint32* lost) {
    sum_spans<T, Out, LANES, VECTORS, FLIGHT, PARTS>(data, Spans{offsets, count, total, length, part, longest, parts},
                                                     Results<Out>{values, marked, divisor, omit_nan != 0}, stored, lost);
}

template <class T, class Out, bool VECTORS, int FLIGHT, bool TOGETHER, bool PARTS, int THREADS>
__global__ void __launch_bounds__(THREADS) columns(const T* data, uint64 vectors, uint32 width, uint64 period, uint32 tiles,
                                                   uint64 periods, uint64 height, Out* values, uint32* marked,
                                                   uint64 divisor, uint32 omit_nan, double* stored, uint32* lost) {
    extern __shared__ __align__(16) char memory[];
    sum_columns<T, Out, VECTORS, FLIGHT, TOGETHER, PARTS>(data, ColumnsOf{vectors, width, period, tiles, periods, height},
                                                          Results<Out>{values, marked, divisor, omit_nan != 0}, stored, lost,
                                                          memory);
}

template <class T, int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS, 3) short_columns(const T* data, uint64 vectors, uint32 height, T* values,
                                                         uint32* marked, uint64 divisor, uint32 omit_nan) {
    sum_short_columns<T, T, FLIGHT>(data, vectors, height, Results<T>{values, marked, divisor, omit_nan != 0});
}

// `parts` blocks for each of the values that are listed; their totals must be zero before. The launch provides BYTES of shared
// memory a thread.
template <class T, int THREADS, int BYTES>
__global__ void __launch_bounds__(THREADS) wide_sums(const T* data, const int64* offsets, uint64 outer, uint64 stride,
                                                     uint64 count, uint64 total, const int64* listed, uint32 parts,
                                                     uint64* totals) {
    static_assert(BYTES == WideSum<T, THREADS>::BYTES);
    extern __shared__ __align__(16) char memory[];
    const uint64 which = blockIdx.x / parts;
    add_members<WideSum<T, THREADS>, THREADS>(data, Members{offsets, outer, stride, count, total}, listed[which],
                                             blockIdx.x % parts, parts, totals + which * Total::OF_VALUES, memory);
}

// values[listed[k]] of totals[k], and how many elements were left out in omitted[listed[k]].
template <class Out>
__global__ void __launch_bounds__(64) round_totals(uint64* totals, uint64 totals_count, const int64* offsets,
                                                   uint64 outer, uint64 stride, uint64 count, uint64 total,
                                                   const int64* listed, Out* values, uint32* omitted, uint32 mean,
                                                   uint32 omit_nan) {
    const uint64 which = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (which >= totals_count) return;
    round_listed<Out>(totals + which * Total::OF_VALUES, Members{offsets, outer, stride, count, total}, listed[which], values,
                      omitted, mean, omit_nan);
}
