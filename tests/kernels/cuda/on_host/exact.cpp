// The exact accumulator of one warp behind a C function.
#include "cuda.h"
#include "fibers.h"
// then the device code
#include "exact.inc"

constexpr int FLIGHT = 2, GRID = 2;

template <class T, int TERMS, bool AHEAD>
void run(const T* data, uint64 count, uint64* words) {
    using S = Sum<T, TERMS, LANES>;
    gridDim.x = GRID;
    for (blockIdx.x = 0; blockIdx.x < GRID; ++blockIdx.x) {
        std::vector<int64> memory(S::BYTES / 8 * LANES, 0x5EED5EED5EED5EED);
        Warp().run([&] {
            const Total total{words};
            S sum(memory.data(), total);
            for_each_tile<FLIGHT, AHEAD>(Vectors<T>(data, count), sum);
            total.note(sum.specials.flags, sum.specials.nans);
            sum.finish();
        });
    }
    blockIdx.x = 0;
    gridDim.x = 1;
}

template <class T, int TERMS>
void run(const void* data, uint64 count, bool ahead, uint64* words) {
    const T* const elements = static_cast<const T*>(data);
    ahead ? run<T, TERMS, true>(elements, count, words) : run<T, TERMS, false>(elements, count, words);
}

#define EXACT(T, TERMS) \
    if (!strcmp(dtype, #T) && !strcmp(kind, #TERMS)) return run<T, TERMS>(data, count, ahead, words), true
#define EXACT_ALL(T) EXACT(T, VALUES); EXACT(T, MAGNITUDES); EXACT(T, SQUARES)

extern "C" bool exact_by_name(const char* dtype, const char* kind, const void* data, uint64 count, bool ahead,
                              uint64* words) {
    EXACT_ALL(float16); EXACT_ALL(bfloat16); EXACT_ALL(float32); EXACT_ALL(float64);
    return false;
}
