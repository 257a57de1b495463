// Exact reductions of many values behind a C function: a launch by the name of its kernel, its blocks one after another. A block
// is one warp.
#include "cuda.h"
#include "fibers.h"
#include <cstdint>
#include <vector>
// then the device code
#include "grouped_columns.cuh"
#include "grouped_finish.cuh"
#include "exact_sums.cuh"
#include "grouped_stream.cuh"

template <class T>
T& at(void* const* args, int place) { return *static_cast<T*>(args[place]); }

template <class T, int TERMS>
From<T, TERMS> from(void* const* args) { return TermsFrom<T, TERMS>::of(at<T*>(args, 0), at<T*>(args, 1)); }

template <class Body>
void blocks(uint64 grid, const Body& body) {
    gridDim.x = unsigned(grid);
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) Warp::run(body);
    blockIdx.x = 0;
    gridDim.x = 1;
}

template <class T>
Results<T> results_of(void* const* a, int from) {
    return {at<T*>(a, from), at<uint32*>(a, from + 1), at<uint64>(a, from + 2), at<uint64>(a, from + 3), at<uint32>(a, from + 4) != 0};
}

template <class T, int L, int ROWS, int FLIGHT>
bool run_rows(uint64 grid, void* const* a) {
    const RowsOf<T> of{at<T*>(a, 0), at<uint64>(a, 1), at<uint32>(a, 2)};
    const Results<T> results = results_of<T>(a, 3);
    blocks(grid, [&] { sum_rows<T, L, ROWS, FLIGHT>(of, results); });
    return true;
}

template <class T, int TERMS, int FLIGHT>
bool run_pairs(uint64 grid, void* const* a) {
    const Results<T> results = results_of<T>(a, 2);
    blocks(grid, [&] { sum_pairs<T, TERMS, FLIGHT>(at<T*>(a, 0), at<uint64>(a, 1), results); });
    return true;
}

Spans spans_of(void* const* a, int from) {
    return {at<int64*>(a, from), at<uint64>(a, from + 1), at<uint64>(a, from + 2), at<uint64>(a, from + 3),
            at<uint64>(a, from + 3), at<uint64>(a, from + 4), 1};
}

template <class T, int READS, int ENDS, bool MEAN>
bool run_stream(uint64 grid, void* const* a) {
    const Spans of{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), 0, 0, at<uint64>(a, 4), 1};
    const Results<T> results = results_of<T>(a, 6);
    std::vector<uint4> memory(Stream<T, READS>::BYTES / 16 + 1, uint4{0x5EED, 0x5EED, 0x5EED, 0x5EED});
    blocks(grid, [&] {
        sum_stream<T, READS, ENDS, MEAN>(at<T*>(a, 0), of, at<uint64>(a, 5), results, at<uint64*>(a, 11),
                                         reinterpret_cast<char*>(memory.data()));
    });
    if (memory.back().x != 0x5EED) abort();
    return true;
}

template <class T, int L, int FLIGHT>
bool run_later(uint64 grid, void* const* a) {
    const Spans of{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), 0, 0, at<uint64>(a, 4), 1};
    const Results<T> results = results_of<T>(a, 5);
    blocks(grid, [&] { sum_left<T, L, FLIGHT>(at<T*>(a, 0), of, results, at<uint64*>(a, 10)); });
    return true;
}

template <class T, int TERMS, int L, int SPANS, bool VECTORS, int FLIGHT, int ROUNDS>
bool run_spans(uint64 grid, void* const* a) {
    const Spans of = spans_of(a, 2);
    const Results<T> results = results_of<T>(a, 7);
    blocks(grid, [&] { SpansAgent<T, TERMS, L, SPANS, VECTORS, FLIGHT, ROUNDS>{from<T, TERMS>(a), of, results}.run(); });
    return true;
}

template <class T, int TERMS, bool VECTORS, int FLIGHT>
bool run_columns(uint64 grid, uint64 shared, void* const* a) {
    const ColumnsOf of{at<uint64>(a, 2), at<uint32>(a, 3), at<uint64>(a, 4), at<uint32>(a, 5),
                       at<uint64>(a, 6), at<uint32>(a, 7), at<uint64>(a, 8)};
    const Counted counted{int(at<uint32>(a, 9)), int(at<uint32>(a, 10)), int(at<uint32>(a, 11))};
    const PlacesOfParts<T, TERMS> parts{at<double*>(a, 13), at<uint32*>(a, 14), at<uint64>(a, 12)};
    const Results<T> results = results_of<T>(a, 15);
    std::vector<uint64> memory(shared / 8 + 1, 0x5EED5EED5EED5EED);
    blocks(grid, [&] {
        sum_columns<T, TERMS, VECTORS, FLIGHT>(from<T, TERMS>(a), of, counted, parts, results, reinterpret_cast<char*>(memory.data()));
    });
    if (memory.back() != 0x5EED5EED5EED5EED) abort();
    return true;
}

template <class T, int TERMS, bool VECTORS, int FLIGHT>
bool run_short_columns(uint64 grid, void* const* a) {
    const Results<T> results = results_of<T>(a, 3);
    blocks(grid, [&] { ShortColumns<T, TERMS, VECTORS, FLIGHT>{at<T*>(a, 0), at<uint64>(a, 1), at<uint32>(a, 2), results}.run(); });
    return true;
}

template <class T, int TERMS, bool VECTORS, int FLIGHT>
bool run_parts(uint64 grid, void* const* a) {
    const uint64 count = at<uint64>(a, 2), length = at<uint64>(a, 3), part = at<uint64>(a, 4);
    const uint32 number = at<uint32>(a, 5);
    const PlacesOfParts<T, TERMS> to{at<double*>(a, 8), at<uint32*>(a, 9), at<uint64>(a, 7)};
    const Spans of{nullptr, count * number, count * length, length, part, part, number};
    blocks(grid, [&] { sum_parts_of_rows<T, TERMS, VECTORS, FLIGHT>(from<T, TERMS>(a), of, int(at<uint32>(a, 6)), to); });
    return true;
}

template <class T, int TERMS>
bool run_close(uint64 grid, uint64 shared, void* const* a) {
    const PlacesOfParts<T, TERMS> parts{at<double*>(a, 0), at<uint32*>(a, 1), at<uint64>(a, 2)};
    const Counted counted{int(at<uint32>(a, 6)), int(at<uint32>(a, 7)), int(at<uint32>(a, 8))};
    const Results<T> results = results_of<T>(a, 9);
    std::vector<uint64> memory(shared / 8 + 1, 0x5EED5EED5EED5EED);
    blocks(grid, [&] {
        close_parts_of<T, TERMS>(parts, at<uint64>(a, 3), at<uint64>(a, 4), at<uint32>(a, 5), counted, results,
                                 reinterpret_cast<char*>(memory.data()));
    });
    return true;
}

template <class T, int TERMS>
void run_totals(uint64 grid, void* const* a) {
    using S = Sum<T, TERMS, LANES>;
    const Members of{at<int64*>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<uint64>(a, 5), at<uint64>(a, 6)};
    const uint32 parts = at<uint32>(a, 8);
    std::vector<uint64> memory(S::BYTES / 8 * LANES, 0x5EED5EED5EED5EED);
    blocks(grid, [&] {
        const uint64 which = blockIdx.x / parts;
        const int64* const listed = at<int64*>(a, 11);
        add_members<S, LANES>(from<T, TERMS>(a), of, listed ? listed[which] : at<uint64>(a, 7) + which, blockIdx.x % parts, parts,
                                 at<uint64*>(a, 10) + which * at<uint32>(a, 9), reinterpret_cast<char*>(memory.data()));
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

#define RUN(TEXT, CALL) \
    if (name == TEXT) return CALL
#define SPANS(T, TERMS, L, S, V, F, R) \
    RUN("spans<" #T ", " #TERMS ", " #L ", " #S ", " #V ", " #F ", " #R ", 32>", (run_spans<T, TERMS, L, S, V, F, R>(grid, args)))
#define SHORT(T, TERMS, V, F) \
    RUN("short_columns<" #T ", " #TERMS ", " #V ", " #F ", 32>", (run_short_columns<T, TERMS, V, F>(grid, args)))
#define OF_ALL(T, TERMS) \
    SPANS(T, TERMS, 32, 1, true, 4, 1); SPANS(T, TERMS, 1, 1, false, 1, 2); SPANS(T, TERMS, 4, 4, false, 2, 1); \
    SPANS(T, TERMS, 8, 8, false, 2, 1); SPANS(T, TERMS, 32, 1, false, 2, 1); \
    RUN("columns<" #T ", " #TERMS ", true, 2, 32>", (run_columns<T, TERMS, true, 2>(grid, shared, args))); \
    RUN("columns<" #T ", " #TERMS ", false, 2, 32>", (run_columns<T, TERMS, false, 2>(grid, shared, args))); \
    RUN("parts<" #T ", " #TERMS ", true, 4, 32>", (run_parts<T, TERMS, true, 4>(grid, args))); \
    RUN("parts<" #T ", " #TERMS ", false, 4, 32>", (run_parts<T, TERMS, false, 4>(grid, args))); \
    RUN("close_parts<" #T ", " #TERMS ", 32>", (run_close<T, TERMS>(grid, shared, args)))
#define EVERY(T, TERMS) \
    OF_ALL(T, TERMS); SHORT(T, TERMS, true, 4); SHORT(T, TERMS, true, 8); SHORT(T, TERMS, true, 16); \
    SHORT(T, TERMS, false, 4); SHORT(T, TERMS, false, 8); SHORT(T, TERMS, false, 16)
#define OF_PRODUCTS(T) \
    OF_ALL(T, PRODUCTS); SPANS(T, PRODUCTS, 1, 1, true, 2, 1); SPANS(T, PRODUCTS, 8, 2, true, 2, 1); \
    SPANS(T, PRODUCTS, 16, 1, true, 4, 1)
#define OF_SQUARES(T, TERMS) \
    EVERY(T, TERMS); SPANS(T, TERMS, 1, 1, true, 1, 2); SPANS(T, TERMS, 1, 1, true, 4, 1); SPANS(T, TERMS, 2, 2, true, 8, 1); \
    SPANS(T, TERMS, 8, 4, true, 4, 1); SPANS(T, TERMS, 16, 2, true, 8, 1)
#define ROWS(T, L, R, F) RUN("rows<" #T ", " #L ", " #R ", " #F ", 32>", (run_rows<T, L, R, F>(grid, args)))
#define STREAM(T, READS, ENDS, MEAN) \
    RUN("streamed<" #T ", " #READS ", " #ENDS ", " #MEAN ", 32>", (run_stream<T, READS, ENDS, MEAN>(grid, args)))
#define ALL(T) \
    EVERY(T, VALUES); OF_SQUARES(T, SQUARES); OF_SQUARES(T, MOMENTS); OF_PRODUCTS(T); \
    ROWS(T, 1, 2, 1); ROWS(T, 2, 2, 2); ROWS(T, 4, 1, 2); ROWS(T, 32, 1, 1); \
    RUN("pairs<" #T ", VALUES, 4, 32>", (run_pairs<T, VALUES, 4>(grid, args))); \
    RUN("pairs<" #T ", MOMENTS, 4, 32>", (run_pairs<T, MOMENTS, 4>(grid, args))); \
    STREAM(T, 2, 1, false); STREAM(T, 2, 1, true); STREAM(T, 4, 2, false); STREAM(T, 4, 2, true); \
    RUN("streamed_later<" #T ", 4, 1, 32>", (run_later<T, 4, 1>(grid, args))); \
    RUN("streamed_later<" #T ", 32, 1, 32>", (run_later<T, 32, 1>(grid, args)))
#define TOTALS(T, TERMS) \
    if (name == "totals<" #T ", " #TERMS ">") return run_totals<T, TERMS>(grid, args), true; \
    if (name == "finished<" #T ", " #TERMS ">") return run_finished<T, TERMS>(grid, args), true
#define ALL_TOTALS(T) TOTALS(T, VALUES); TOTALS(T, MAGNITUDES); TOTALS(T, SQUARES); TOTALS(T, MOMENTS); TOTALS(T, PRODUCTS)
struct Name {
    const char* text;
    bool operator==(const char* other) const { return !strcmp(text, other); }
};

extern "C" bool grouped_by_name(const char* text, uint64 grid, uint64 shared, void* const* args) {
    const Name name{text};
    ALL_TOTALS(float16); ALL_TOTALS(bfloat16); ALL_TOTALS(float32); ALL_TOTALS(float64);
    ALL(float32);
    ALL(float64);
    return false;
}
