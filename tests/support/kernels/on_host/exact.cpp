// The exact accumulator of one warp behind a C function.
#include "cuda.h"
#include "fibers.h"
#include <vector>
// then the device code
#include "exact.inc"

constexpr int GRID = 2;

// Reads of the shorter tiles and of the longer ones: two, and five, with which bfloat16 has more than the 32 elements that it adds up
// plainly; of a band as many as it has parts, and as many as it takes.
template <class S>
struct Reads {
    static constexpr int SHORTER = 2, LONGER = 5;
};
template <class T, int L, int FIELDS, int THREADS, int PARTS>
struct Reads<BandSum<T, L, FIELDS, THREADS, PARTS>> {
    static constexpr int SHORTER = PARTS, LONGER = BandSum<T, L, FIELDS, THREADS, PARTS>::W::MOST / Vector<T>::size;
};

template <bool AHEAD, class S, class Source>
void run(const Source& source, uint64* words) {
    constexpr int FLIGHT = AHEAD ? Reads<S>::LONGER : Reads<S>::SHORTER;
    gridDim.x = GRID;
    for (blockIdx.x = 0; blockIdx.x < GRID; ++blockIdx.x) {
        std::vector<int64> memory((S::BYTES * LANES + 7) / 8, 0x5EED5EED5EED5EED);
        Warp::run([&] {
            S sum(reinterpret_cast<char*>(memory.data()), Total{words});
            add_tiles<FLIGHT, AHEAD>(source, sum);
            sum.finish();
        });
    }
    blockIdx.x = 0;
    gridDim.x = 1;
}

template <class S, class Source>
bool run(const Source& source, uint64 count, bool ahead, uint64* words) {
    ahead ? run<true, S>(source, words) : run<false, S>(source, words);
    Total{words}.note_count(count);
    return true;
}

#define EXACT(T, TERMS) \
    if (!strcmp(dtype, #T) && !strcmp(kind, #TERMS)) \
        return run<Sum<T, TERMS, LANES>>( \
            ElementsOf<T, TERMS>::source(static_cast<const T*>(x), static_cast<const T*>(y), count), count, ahead, words)
#define EXACT_ALL(T) \
    EXACT(T, VALUES); EXACT(T, MAGNITUDES); EXACT(T, SQUARES); EXACT(T, MOMENTS); EXACT(T, PRODUCTS)

#define CHOSEN(T, TERMS, CHOICE) \
    if (!strcmp(dtype, #T " " #CHOICE) && !strcmp(kind, #TERMS)) \
        return run<ChosenSum<T, TERMS, CHOICE, LANES>>( \
            ElementsOf<T, TERMS>::source(static_cast<const T*>(x), static_cast<const T*>(y), count), count, ahead, words)

extern "C" bool exact_by_name(const char* dtype, const char* kind, const void* x, const void* y, uint64 count,
                              bool ahead, uint64* words) {
    CHOSEN(float32, SQUARES, 0); CHOSEN(float32, SQUARES, 1); CHOSEN(float32, SQUARES, 2);
    CHOSEN(float32, MOMENTS, 0); CHOSEN(float32, MOMENTS, 1); CHOSEN(float32, MOMENTS, 2); CHOSEN(float32, MOMENTS, 3);
    CHOSEN(float64, SQUARES, 0); CHOSEN(float64, SQUARES, 1); CHOSEN(float64, MOMENTS, 0); CHOSEN(float64, MOMENTS, 1);
    CHOSEN(bfloat16, SQUARES, 0); CHOSEN(bfloat16, SQUARES, 1); CHOSEN(bfloat16, MOMENTS, 0); CHOSEN(bfloat16, MOMENTS, 1);
    CHOSEN(bfloat16, PRODUCTS, 0); CHOSEN(bfloat16, PRODUCTS, 1); CHOSEN(float32, PRODUCTS, 0); CHOSEN(float32, PRODUCTS, 1);
    CHOSEN(float64, PRODUCTS, 0); CHOSEN(float64, PRODUCTS, 1);
    EXACT_ALL(float16); EXACT_ALL(bfloat16); EXACT_ALL(float32); EXACT_ALL(float64);
    return false;
}
