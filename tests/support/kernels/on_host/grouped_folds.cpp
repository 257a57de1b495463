// The reductions of many values that leave words, behind a C function: a launch by the name of its kernel, its blocks one after
// another, each of one warp.
#include "cuda.h"
#include "fibers.h"
// then the device code
#include "grouped_folds.cuh"

template <class T>
T& at(void* const* args, int place) { return *static_cast<T*>(args[place]); }

template <class R>
typename ReadBy<R>::From from(void* const* args) {
    using Of = ReadBy<R>;
    return Of::of(at<typename Of::X*>(args, 0), at<typename Of::Y*>(args, 1));
}

template <class Body>
void blocks(uint64 grid, const Body& body) {
    gridDim.x = unsigned(grid);
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) Warp::run(body);
    blockIdx.x = 0;
    gridDim.x = 1;
}

template <class R, int L, int KEPT>
void run_spans(uint64 grid, void* const* a) {
    const Spans of{at<int64*>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<uint64>(a, 5),
                   at<uint64>(a, 6), at<uint64>(a, 7), at<uint32>(a, 8)};
    const Folded<R, KEPT> folded{at<uint64*>(a, 10), at<typename R::Accumulator*>(a, 11)};
    blocks(grid, [&] { fold_spans_of<R, L>(from<R>(a), of, at<bool>(a, 9), folded); });
}

template <class R, int KEPT>
void run_columns(uint64 grid, void* const* a) {
    const Folded<R, KEPT> folded{at<uint64*>(a, 6), at<typename R::Accumulator*>(a, 7)};
    blocks(grid, [&] {
        fold_columns_of<R, KEPT, LANES>(from<R>(a), at<uint32>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<bool>(a, 5), folded);
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

#define FOLDS(TEXT, KEPT, ...) \
    if (name == "fold_spans<" TEXT ", 4, " #KEPT ", 32>") return run_spans<__VA_ARGS__, 4, KEPT>(grid, args), true; \
    if (name == "fold_spans<" TEXT ", 32, " #KEPT ", 32>") return run_spans<__VA_ARGS__, 32, KEPT>(grid, args), true; \
    if (name == "fold_columns<" TEXT ", " #KEPT ", 32>") return run_columns<__VA_ARGS__, KEPT>(grid, args), true; \
    if (name == "merge_parts<" TEXT ", " #KEPT ", 32>") return run_merge<__VA_ARGS__, KEPT>(grid, args), true
#define FOLD(R, T, KEPT) FOLDS(#R "<" #T ">", KEPT, R<T>)
#define DOT(T, U, KEPT) FOLDS("Dot<" #T ", " #U ">", KEPT, Dot<T, U>)
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
    DOT(boolean, boolean, 2);
    DOT(int8, int8, 2);
    DOT(uint32, uint32, 2);
    DOT(int8, int64, 3);
    DOT(int64, int64, 3);
    DOT(uint64, int64, 3);
    DOT(uint64, uint64, 3);
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
