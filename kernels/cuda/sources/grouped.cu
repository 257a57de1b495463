// Exact reductions of many values that add up elements, squares or both, in one read: of rows and other spans of neighbouring elements,
// and of columns. Each value is rounded once, to nearest, ties to even (include/grouped_value.cuh). Values of which that is not sure are
// marked, and added up as whole arrays are (grouped_states.cu).
//
// TERMS says what is added up: VALUES, SQUARES, MOMENTS, which are both, or PRODUCTS of two arrays, of which `other` is the second
// (include/grouped_sums.cuh). The rest says who adds up what.
#include "grouped_columns.cuh"

// With no number of blocks the compiler takes so few registers in some kernels that it spills some.
#if __CUDA_ARCH__ >= 1000 || __CUDA_ARCH__ == 860
constexpr int LEAST_BLOCKS = 3;
#else
constexpr int LEAST_BLOCKS = 0;
#endif

template <class T, int LANES, int ROWS, int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS) rows(const T* data, uint64 count, uint32 length, T* values, uint32* marked, uint64 finish,
                                                uint64 ddof, uint32 omit_nan) {
    sum_rows<T, LANES, ROWS, FLIGHT>(RowsOf<T>{data, count, length}, Results<T>{values, marked, finish, ddof, omit_nan != 0});
}

template <class T, int TERMS, int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS) pairs(const T* data, uint64 count, T* values, uint32* marked, uint64 finish, uint64 ddof,
                                                 uint32 omit_nan) {
    sum_pairs<T, TERMS, FLIGHT>(data, count, Results<T>{values, marked, finish, ddof, omit_nan != 0});
}

template <class T, int TERMS, int LANES, int SPANS, bool VECTORS, int FLIGHT, int ROUNDS, int THREADS>
__global__ void __launch_bounds__(THREADS, LEAST_BLOCKS) spans(const T* data, const T* other, const int64* offsets, uint64 count, uint64 total,
                                                               uint64 length, uint64 longest, T* values, uint32* marked, uint64 finish,
                                                               uint64 ddof, uint32 omit_nan) {
    const ::Spans of{offsets, count, total, length, length, longest, 1};
    const Results<T> results{values, marked, finish, ddof, omit_nan != 0};
    SpansAgent<T, TERMS, LANES, SPANS, VECTORS, FLIGHT, ROUNDS>{TermsFrom<T, TERMS>::of(data, other), of, results}.run();
}

// The launch provides PlacesOfParts::BYTES of shared memory a thread where threads share columns.
template <class T, int TERMS, bool VECTORS, int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS) columns(const T* data, const T* other, uint64 total, uint32 width, uint64 period, uint32 tiles, uint64 periods,
                                                   uint32 once, uint64 height, uint32 bits, uint32 threads, uint32 sums, uint64 size,
                                                   double* doubles, uint32* words, T* values, uint32* marked, uint64 finish, uint64 ddof,
                                                   uint32 omit_nan) {
    extern __shared__ __align__(16) char memory[];
    sum_columns<T, TERMS, VECTORS, FLIGHT>(TermsFrom<T, TERMS>::of(data, other), ColumnsOf{total, width, period, tiles, periods, once, height},
                                           Counted{int(bits), int(threads), int(sums)}, PlacesOfParts<T, TERMS>{doubles, words, size},
                                           Results<T>{values, marked, finish, ddof, omit_nan != 0}, memory);
}

template <class T, int TERMS, bool VECTORS, int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS, 3) short_columns(const T* data, uint64 vectors, uint32 height, T* values, uint32* marked,
                                                         uint64 finish, uint64 ddof, uint32 omit_nan) {
    const Results<T> results{values, marked, finish, ddof, omit_nan != 0};
    ShortColumns<T, TERMS, VECTORS, FLIGHT>{data, vectors, height, results}.run();
}

// Parts of rows, and what puts the parts of rows or of columns together.
template <class T, int TERMS, bool VECTORS, int FLIGHT, int THREADS>
__global__ void __launch_bounds__(THREADS, 4) parts(const T* data, const T* other, uint64 count, uint64 length, uint64 part, uint32 number, uint32 bits,
                                                 uint64 size, double* doubles, uint32* words) {
    const ::Spans of{nullptr, count * number, count * length, length, part, part, number};
    sum_parts_of_rows<T, TERMS, VECTORS, FLIGHT>(TermsFrom<T, TERMS>::of(data, other), of, int(bits), PlacesOfParts<T, TERMS>{doubles, words, size});
}

// The launch provides PlacesOfParts::BYTES of shared memory a thread.
template <class T, int TERMS, int THREADS>
__global__ void __launch_bounds__(THREADS) close_parts(double* doubles, uint32* words, uint64 size, uint64 width, uint64 height, uint32 beside,
                                                       uint32 bits, uint32 threads, uint32 sums, T* values, uint32* marked, uint64 finish,
                                                       uint64 ddof, uint32 omit_nan) {
    extern __shared__ __align__(16) char memory[];
    close_parts_of<T, TERMS>(PlacesOfParts<T, TERMS>{doubles, words, size}, width, height, beside,
                             Counted{int(bits), int(threads), int(sums)},
                             Results<T>{values, marked, finish, ddof, omit_nan != 0}, memory);
}
