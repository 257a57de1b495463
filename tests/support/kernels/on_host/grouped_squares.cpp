// Squares and moments of many values behind a C function: a launch by the name of its kernel, its blocks one after another. A block
// is one warp.
#include "cuda.h"
#include "fibers.h"
#include <cstdint>
// then the device code
#include "grouped_square_columns.cuh"

template <class T>
T& at(void* const* args, int place) { return *static_cast<T*>(args[place]); }

template <class Body>
void blocks(uint64 grid, const Body& body) {
    gridDim.x = unsigned(grid);
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) Warp().run(body);
    blockIdx.x = 0;
    gridDim.x = 1;
}

template <class T>
SpreadResults<T> results_of(void* const* a, int from) {
    return {at<T*>(a, from), at<uint32*>(a, from + 1), at<uint64>(a, from + 2), at<uint64>(a, from + 3), at<uint32>(a, from + 4) != 0};
}

template <class T, bool VALUED, int L, int SPANS, bool VECTORS, int FLIGHT, int ROUNDS>
bool run_spans(uint64 grid, void* const* a) {
    const Spans of{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<uint64>(a, 4), at<uint64>(a, 5), 1};
    const SpreadResults<T> results = results_of<T>(a, 6);
    blocks(grid, [&] { SquareSpans<T, VALUED, L, SPANS, VECTORS, FLIGHT, ROUNDS>{at<T*>(a, 0), of, results}.run(); });
    return true;
}

template <class T, bool VALUED, bool VECTORS, int FLIGHT>
bool run_columns(uint64 grid, void* const* a) {
    const ColumnsOf of{at<uint64>(a, 1), at<uint32>(a, 2), at<uint64>(a, 3), at<uint32>(a, 4), at<uint64>(a, 5), 0};
    const PartsInMemory<T, VALUED> parts{at<double*>(a, 9), at<uint32*>(a, 10), at<uint64>(a, 8)};
    alignas(16) char memory[64 * LANES];
    blocks(grid, [&] { sum_square_columns<T, VALUED, VECTORS, FLIGHT>(at<T*>(a, 0), of, at<uint32>(a, 6), int(at<uint32>(a, 7)), parts, memory); });
    return true;
}

template <class T>
bool run_pairs(uint64 grid, void* const* a) {
    blocks(grid, [&] { half_distances(at<T*>(a, 0), at<uint64>(a, 1), results_of<T>(a, 2)); });
    return true;
}

template <class T, bool VALUED>
bool run_parts(uint64 grid, void* const* a) {
    const uint64 count = at<uint64>(a, 1), length = at<uint64>(a, 2), part = at<uint64>(a, 3);
    const uint32 parts = at<uint32>(a, 4);
    const PartsInMemory<T, VALUED> to{at<double*>(a, 7), at<uint32*>(a, 8), at<uint64>(a, 6)};
    blocks(grid, [&] {
        sum_square_parts<T, VALUED, 4>(at<T*>(a, 0), Spans{nullptr, count * parts, count * length, length, part, part, parts},
                                       int(at<uint32>(a, 5)), to);
    });
    return true;
}

template <class T, bool VALUED, int L>
bool run_close(uint64 grid, void* const* a) {
    const PartsInMemory<T, VALUED> parts{at<double*>(a, 0), at<uint32*>(a, 1), at<uint64>(a, 2)};
    const Counted counted{int(at<uint32>(a, 5)), int(at<uint32>(a, 6)), int(at<uint32>(a, 7))};
    blocks(grid, [&] { close_square_columns<T, VALUED, L>(parts, at<uint64>(a, 3), at<uint64>(a, 4), counted, results_of<T>(a, 8)); });
    return true;
}

#define SPANS_OF(T, V, L, S, VECTORS, F, R) \
    if (!strcmp(name, "square_spans<" #T ", " #V ", " #L ", " #S ", " #VECTORS ", " #F ", " #R ">")) \
        return run_spans<T, V, L, S, VECTORS, F, R>(grid, args)
#define ALL(T, V) \
    SPANS_OF(T, V, 1, 1, true, 1, 2); SPANS_OF(T, V, 1, 1, true, 2, 2); SPANS_OF(T, V, 1, 1, true, 4, 1); \
    SPANS_OF(T, V, 2, 2, true, 4, 1); SPANS_OF(T, V, 2, 2, true, 8, 1); SPANS_OF(T, V, 4, 4, true, 4, 1); \
    SPANS_OF(T, V, 8, 4, true, 4, 1); SPANS_OF(T, V, 8, 4, true, 8, 1); SPANS_OF(T, V, 16, 2, true, 8, 1); \
    SPANS_OF(T, V, 32, 1, true, 4, 1); SPANS_OF(T, V, 1, 1, false, 1, 2); SPANS_OF(T, V, 1, 1, false, 2, 1); \
    SPANS_OF(T, V, 4, 4, false, 1, 1); SPANS_OF(T, V, 4, 4, false, 2, 1); SPANS_OF(T, V, 8, 8, false, 2, 1); \
    SPANS_OF(T, V, 32, 1, false, 2, 1); SPANS_OF(T, V, 32, 1, false, 4, 1); \
    if (!strcmp(name, "square_columns<" #T ", " #V ", true, 2>")) return run_columns<T, V, true, 2>(grid, args); \
    if (!strcmp(name, "square_columns<" #T ", " #V ", false, 2>")) return run_columns<T, V, false, 2>(grid, args); \
    if (!strcmp(name, "square_parts<" #T ", " #V ", 4>")) return run_parts<T, V>(grid, args); \
    if (!strcmp(name, "close_columns<" #T ", " #V ", 1>")) return run_close<T, V, 1>(grid, args); \
    if (!strcmp(name, "close_columns<" #T ", " #V ", 32>")) return run_close<T, V, 32>(grid, args)

extern "C" bool squares_by_name(const char* name, uint64 grid, void* const* args) {
    if (!strcmp(name, "square_pairs<float32>")) return run_pairs<float32>(grid, args);
    if (!strcmp(name, "square_pairs<float64>")) return run_pairs<float64>(grid, args);
    ALL(float32, false); ALL(float32, true);
    ALL(float64, false); ALL(float64, true);
    return false;
}
