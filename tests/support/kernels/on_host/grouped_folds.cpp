// The reductions of many values that leave words, behind a C function: a launch by the name of its kernel, its blocks one after
// another, each of one warp.
#include "cuda.h"
#include "fibers.h"
// then the device code
#include "grouped_folds.cuh"

template <class T>
T& at(void* const* args, int place) { return *static_cast<T*>(args[place]); }

template <class Body>
void blocks(uint64 grid, const Body& body) {
    gridDim.x = unsigned(grid);
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) Warp().run(body);
    blockIdx.x = 0;
    gridDim.x = 1;
}

template <class R, int L, int KEPT>
void run_spans(uint64 grid, void* const* a) {
    const Spans of{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4),
                   at<uint64>(a, 5), at<uint64>(a, 6), at<uint32>(a, 7)};
    const Folded<R, KEPT> folded{at<uint64*>(a, 9), at<typename R::Accumulator*>(a, 10)};
    blocks(grid, [&] { fold_spans_of<R, L>(at<typename R::Element*>(a, 0), of, at<bool>(a, 8), folded); });
}

template <class R, int KEPT>
void run_columns(uint64 grid, void* const* a) {
    const Folded<R, KEPT> folded{at<uint64*>(a, 5), at<typename R::Accumulator*>(a, 6)};
    blocks(grid, [&] {
        fold_columns_of<R, KEPT, LANES>(at<typename R::Element*>(a, 0), at<uint32>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3),
                                        at<bool>(a, 4), folded);
    });
}

template <class R, int KEPT>
void run_merge(uint64 grid, void* const* a) {
    const Folded<R, KEPT> folded{at<uint64*>(a, 6), at<typename R::Accumulator*>(a, 7)};
    blocks(grid, [&] {
        merge_parts_of<R>(at<typename R::Accumulator*>(a, 0), at<uint64>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3),
                          at<uint64>(a, 4), at<uint32>(a, 5), folded);
    });
}

#define FOLD(R, T, KEPT) \
    if (name == "fold_spans<" #R "<" #T ">, 4, " #KEPT ", 32>") return run_spans<R<T>, 4, KEPT>(grid, args), true; \
    if (name == "fold_spans<" #R "<" #T ">, 32, " #KEPT ", 32>") return run_spans<R<T>, 32, KEPT>(grid, args), true; \
    if (name == "fold_columns<" #R "<" #T ">, " #KEPT ", 32>") return run_columns<R<T>, KEPT>(grid, args), true; \
    if (name == "merge_parts<" #R "<" #T ">, " #KEPT ", 32>") return run_merge<R<T>, KEPT>(grid, args), true
#define SELECTING(T) FOLD(ArgMin, T, 1); FOLD(ArgMax, T, 1); FOLD(CountNonzero, T, 1)
#define NUMBERS(T) SELECTING(T); FOLD(Min, T, 1); FOLD(Max, T, 1); FOLD(NormInf, T, 1)
#define SUMS(T, OF_VALUES, OF_SQUARES) \
    NUMBERS(T); FOLD(Sum, T, OF_VALUES); FOLD(Norm1, T, OF_VALUES); FOLD(SumSquares, T, OF_SQUARES)

struct Name {
    const char* text;
    bool operator==(const char* other) const { return !strcmp(text, other); }
};

extern "C" bool fold_by_name(const char* text, uint64 grid, void* const* args) {
    const Name name{text};
    SELECTING(boolean);
    SUMS(int8, 1, 2);
    SUMS(uint32, 2, 2);
    SUMS(int64, 2, 3);
    SUMS(uint64, 2, 3);
    NUMBERS(bfloat16);
    FOLD(CountNan, bfloat16, 1);
    NUMBERS(float64);
    FOLD(CountNan, float64, 1);
    return false;
}
