// The exact sums of many values behind a C function: a launch by the name of its kernel, its blocks one after another. A block
// is one warp, so that a launch of rows or spans has as many times the blocks as it asks for warps a block.
#include "cuda.h"
#include "fibers.h"
#include <cstdint>
#include <vector>
// then the device code
#include "grouped_columns.cuh"
#include "grouped_finish.cuh"
#include "exact_sums.cuh"
#include "grouped_pairs.cuh"
#include "grouped_rows.cuh"
#include "grouped_stream.cuh"
#include "grouped_wide.cuh"

template <class T>
T& at(void* const* args, int place) { return *static_cast<T*>(args[place]); }

template <class Body>
void blocks(uint64 grid, const Body& body) {
    gridDim.x = unsigned(grid);
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) Warp().run(body);
    blockIdx.x = 0;
    gridDim.x = 1;
}

template <class T, class Out, int L, int ROWS, int FLIGHT>
void run_rows(uint64 grid, void* const* a) {
    const RowsOf<T> of{at<T*>(a, 0), at<uint64>(a, 1), at<uint32>(a, 2)};
    const Results<Out> results{at<Out*>(a, 3), at<uint32*>(a, 4), at<uint64>(a, 5), at<bool>(a, 6)};
    blocks(grid, [&] { sum_rows<T, Out, L, ROWS, FLIGHT>(of, results); });
}

template <class T, int FLIGHT>
void run_pairs(uint64 grid, void* const* a) {
    const Results<T> results{at<T*>(a, 2), at<uint32*>(a, 3), at<uint64>(a, 4), at<bool>(a, 5)};
    blocks(grid, [&] { sum_pairs<FLIGHT>(at<T*>(a, 0), at<uint64>(a, 1), results); });
}

template <class T, int READS, int ENDS, bool MEAN>
void run_stream(uint64 grid, void* const* a) {
    const Spans of{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<uint64>(a, 4), at<uint64>(a, 5), 1};
    const Results<T> results{at<T*>(a, 7), at<uint32*>(a, 8), at<uint64>(a, 9), at<bool>(a, 10)};
    std::vector<uint4> memory(Stream<T, READS>::BYTES / 16 + 1, uint4{0x5EED, 0x5EED, 0x5EED, 0x5EED});
    blocks(grid, [&] {
        sum_stream<T, READS, ENDS, MEAN>(at<T*>(a, 0), of, at<uint64>(a, 6), results, at<uint64*>(a, 11),
                                   reinterpret_cast<char*>(memory.data()));
    });
    if (memory.back().x != 0x5EED) abort();
}

template <class T, int L, int FLIGHT>
void run_later(uint64 grid, void* const* a) {
    const Spans of{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<uint64>(a, 4), at<uint64>(a, 5), 1};
    const Results<T> results{at<T*>(a, 6), at<uint32*>(a, 7), at<uint64>(a, 8), at<bool>(a, 9)};
    blocks(grid, [&] { sum_left<T, L, FLIGHT>(at<T*>(a, 0), of, results, at<uint64*>(a, 10)); });
}

template <class T, class Out, int L, bool VECTORS, int FLIGHT, bool PARTS>
void run_spans(uint64 grid, void* const* a) {
    const Spans of{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4),
                   at<uint64>(a, 5), at<uint64>(a, 6), at<uint32>(a, 7)};
    const Results<Out> results{at<Out*>(a, 8), at<uint32*>(a, 9), at<uint64>(a, 10), at<bool>(a, 11)};
    blocks(grid, [&] {
        sum_spans<T, Out, L, VECTORS, FLIGHT, PARTS>(at<T*>(a, 0), of, results, at<double*>(a, 12), at<uint32*>(a, 13));
    });
}

template <class T, class Out, bool VECTORS, int FLIGHT, bool TOGETHER, bool PARTS>
void run_columns(uint64 grid, uint64 shared, void* const* a) {
    const ColumnsOf of{at<uint64>(a, 1), at<uint32>(a, 2), at<uint64>(a, 3), at<uint32>(a, 4), at<uint64>(a, 5), at<uint64>(a, 6)};
    const Results<Out> results{at<Out*>(a, 7), at<uint32*>(a, 8), at<uint64>(a, 9), at<bool>(a, 10)};
    std::vector<uint64> memory(shared / 8 + 1, 0x5EED5EED5EED5EED);
    blocks(grid, [&] {
        sum_columns<T, Out, VECTORS, FLIGHT, TOGETHER, PARTS>(at<T*>(a, 0), of, results, at<double*>(a, 11),
                                                              at<uint32*>(a, 12), reinterpret_cast<char*>(memory.data()));
    });
    if (memory.back() != 0x5EED5EED5EED5EED) abort();
}

template <class T, int FLIGHT>
void run_short_columns(uint64 grid, void* const* a) {
    const Results<T> results{at<T*>(a, 3), at<uint32*>(a, 4), at<uint64>(a, 5), at<bool>(a, 6)};
    blocks(grid, [&] { sum_short_columns<T, T, FLIGHT>(at<T*>(a, 0), at<uint64>(a, 1), at<uint32>(a, 2), results); });
}

template <class T>
void run_wide(uint64 grid, void* const* a) {
    const Members of{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<uint64>(a, 5)};
    const uint32 parts = at<uint32>(a, 7);
    std::vector<uint64> memory(WideSum<T, LANES>::BYTES / 8 * LANES, 0x5EED5EED5EED5EED);
    blocks(grid, [&] {
        const uint64 which = blockIdx.x / parts;
        add_members<WideSum<T, LANES>, LANES>(at<T*>(a, 0), of, at<int64*>(a, 6)[which], blockIdx.x % parts, parts,
                           at<uint64*>(a, 8) + which * Total::OF_VALUES, reinterpret_cast<char*>(memory.data()));
    });
}

template <class T, int TERMS>
void run_totals(uint64 grid, void* const* a) {
    using S = Sum<T, TERMS, LANES>;
    const Members of{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<uint64>(a, 5)};
    const uint32 parts = at<uint32>(a, 7);
    std::vector<uint64> memory(S::BYTES / 8 * LANES, 0x5EED5EED5EED5EED);
    blocks(grid, [&] {
        const uint64 which = blockIdx.x / parts;
        const int64* const listed = at<int64*>(a, 10);
        add_members<S, LANES>(at<T*>(a, 0), of, listed ? listed[which] : at<uint64>(a, 6) + which, blockIdx.x % parts, parts,
                                 at<uint64*>(a, 9) + which * at<uint32>(a, 8), reinterpret_cast<char*>(memory.data()));
    });
}

template <class T, int TERMS>
void run_finished(uint64 grid, void* const* a) {
    const Members of{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<uint64>(a, 5)};
    std::vector<uint32> memory(TotalsOf<TERMS>::ROOM * LANES + 1, 0x5EED5EED);
    blocks(grid, [&] {
        finish_values<T, TERMS>(at<uint64*>(a, 0), of, at<uint64>(a, 6), at<uint64>(a, 7), at<uint64>(a, 8), at<uint64>(a, 9),
                                at<uint32>(a, 10) != 0, at<T*>(a, 11), at<uint32*>(a, 12), at<int64*>(a, 13), reinterpret_cast<char*>(memory.data()));
    });
    if (memory.back() != 0x5EED5EED) abort();
}

template <class Out>
void run_round(uint64, void* const* a) {
    const Members of{at<int64*>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<uint64>(a, 5), at<uint64>(a, 6)};
    for (uint64 which = 0; which < at<uint64>(a, 1); ++which) {
        uint64* const words = at<uint64*>(a, 0) + which * Total::OF_VALUES;
        const int64 value = at<int64*>(a, 7)[which];
        round_listed<Out>(words, of, value, at<Out*>(a, 8), at<uint32*>(a, 9), at<bool>(a, 10), at<bool>(a, 11));
    }
}

#define ROWS(T, L, R, F) \
    if (name == "rows<" #T ", " #T ", " #L ", " #R ", " #F ", 32>") return run_rows<T, T, L, R, F>(grid, args), true
#define SPANS(T, OUT, L, V, F, P) \
    if (name == "spans<" #T ", " #OUT ", " #L ", " #V ", " #F ", " #P ", 32>") \
        return run_spans<T, OUT, L, V, F, P>(grid, args), true
#define COLUMNS(T, OUT, V, TOGETHER, P) \
    if (name == "columns<" #T ", " #OUT ", " #V ", 2, " #TOGETHER ", " #P ", 32>") \
        return run_columns<T, OUT, V, 2, TOGETHER, P>(grid, shared, args), true
#define ALL_COLUMNS(T, OUT) \
    COLUMNS(T, OUT, true, true, true); COLUMNS(T, OUT, true, true, false); COLUMNS(T, OUT, true, false, true); \
    COLUMNS(T, OUT, true, false, false); COLUMNS(T, OUT, false, true, true); COLUMNS(T, OUT, false, true, false); \
    COLUMNS(T, OUT, false, false, true); COLUMNS(T, OUT, false, false, false)
#define ALL(T) \
    ROWS(T, 1, 2, 1); ROWS(T, 2, 2, 2); ROWS(T, 4, 1, 2); ROWS(T, 32, 1, 1); \
    SPANS(T, T, 1, false, 1, false); SPANS(T, T, 4, false, 2, false); SPANS(T, T, 32, false, 2, false); \
    SPANS(T, T, 32, true, 2, false); SPANS(T, T, 32, true, 2, true); \
    ALL_COLUMNS(T, T); \
    if (name == "short_columns<" #T ", 4, 32>") return run_short_columns<T, 4>(grid, args), true; \
    if (name == "short_columns<" #T ", 8, 32>") return run_short_columns<T, 8>(grid, args), true; \
    if (name == "short_columns<" #T ", 16, 32>") return run_short_columns<T, 16>(grid, args), true; \
    if (name == "streamed<" #T ", 2, 1, false, 32>") return run_stream<T, 2, 1, false>(grid, args), true; \
    if (name == "streamed<" #T ", 2, 1, true, 32>") return run_stream<T, 2, 1, true>(grid, args), true; \
    if (name == "streamed<" #T ", 4, 2, false, 32>") return run_stream<T, 4, 2, false>(grid, args), true; \
    if (name == "streamed<" #T ", 4, 2, true, 32>") return run_stream<T, 4, 2, true>(grid, args), true; \
    if (name == "streamed_later<" #T ", 4, 1, 32>") return run_later<T, 4, 1>(grid, args), true; \
    if (name == "streamed_later<" #T ", 32, 1, 32>") return run_later<T, 32, 1>(grid, args), true; \
    if (name == "wide_sums<" #T ">") return run_wide<T>(grid, args), true; \
    if (name == "round_totals<" #T ">") return run_round<T>(grid, args), true
#define TOTALS(T, TERMS) \
    if (name == "totals<" #T ", " #TERMS ">") return run_totals<T, TERMS>(grid, args), true; \
    if (name == "finished<" #T ", " #TERMS ">") return run_finished<T, TERMS>(grid, args), true
#define ALL_TOTALS(T) TOTALS(T, VALUES); TOTALS(T, MAGNITUDES); TOTALS(T, SQUARES); TOTALS(T, MOMENTS)
#define STAGES(OUT) \
    SPANS(term, OUT, 1, false, 2, false); SPANS(term, OUT, 2, false, 2, false); SPANS(term, OUT, 4, false, 4, false); \
    SPANS(term, OUT, 8, false, 8, false); SPANS(term, OUT, 32, false, 8, false); SPANS(term, OUT, 32, false, 8, true); \
    ALL_COLUMNS(term, OUT)

struct Name {
    const char* text;
    bool operator==(const char* other) const { return !strcmp(text, other); }
};

extern "C" bool grouped_by_name(const char* text, uint64 grid, uint64 shared, void* const* args) {
    const Name name{text};
    if (name == "pairs<4, 32>") return run_pairs<float32, 4>(grid, args), true;
    if (name == "double_pairs<4, 32>") return run_pairs<float64, 4>(grid, args), true;
    ALL_TOTALS(float16); ALL_TOTALS(bfloat16); ALL_TOTALS(float32); ALL_TOTALS(float64);
    ALL(float32);
    ALL(float64);
    STAGES(float32);
    STAGES(float64);
    return false;
}
