// The device code of reductions and generator behind C functions, by the names that Python knows.
#include "cuda.h"
// then the device code
#include "compensated.inc"
#include "generate.inc"
#include "traverse.cuh"

constexpr int THREADS = 32, FLIGHT = 2;

template <class R>
void reduce(const void* data, uint64 count, uint64 first, bool omit_nan, uint64* words) {
    const Piece<typename R::Element> piece{static_cast<const typename R::Element*>(data), count, first, omit_nan};
    auto whole = R::Accumulator::identity();
    blockDim.x = THREADS;
    for (threadIdx.x = 0; threadIdx.x < THREADS; ++threadIdx.x) whole.merge(fold_vectors<R, FLIGHT>(piece));
    threadIdx.x = 0;
    blockDim.x = 1;
    whole.store(words);
}

#define REDUCE(R) \
    if (name == #R) return reduce<R>(data, count, first, omit_nan, words), true
#define REDUCE_ALL(T) REDUCE(ArgMin<T>); REDUCE(ArgMax<T>); REDUCE(CountNonzero<T>)
#define REDUCE_NUMBERS(T) \
    REDUCE_ALL(T); REDUCE(Sum<T>); REDUCE(Norm1<T>); REDUCE(SumSquares<T>); REDUCE(Min<T>); REDUCE(Max<T>); \
    REDUCE(NormInf<T>)
#define REDUCE_REALS(T) \
    REDUCE_NUMBERS(T); REDUCE(Prod<T>); REDUCE(Compensating<Sum<T>>); REDUCE(Compensating<Norm1<T>>); \
    REDUCE(Compensating<SumSquares<T>>)

struct Name {
    const char* text;
    bool operator==(const char* other) const { return !strcmp(text, other); }
};

extern "C" bool reduce_by_name(const char* text, const void* data, uint64 count, uint64 first, bool omit_nan,
                               uint64* words) {
    const Name name{text};
    REDUCE_REALS(float16); REDUCE_REALS(bfloat16); REDUCE_REALS(float32); REDUCE_REALS(float64);
    REDUCE_NUMBERS(int8); REDUCE_NUMBERS(int16); REDUCE_NUMBERS(int32); REDUCE_NUMBERS(int64);
    REDUCE_NUMBERS(uint8); REDUCE_NUMBERS(uint16); REDUCE_NUMBERS(uint32); REDUCE_NUMBERS(uint64);
    REDUCE_ALL(boolean);
    return false;
}

template <class T, int METHOD>
void generate(void* out, uint64 count, uint64 start, const Plan& plan) {
    for (uint64 k = 0; k < count; ++k) element<T, METHOD>(static_cast<T*>(out)[k], plan, start + k);
}

#define GENERATE(T, METHOD) \
    if (name == #T && method == METHOD) return generate<T, METHOD>(out, count, start, plan), true
#define GENERATE_ALL(T) \
    GENERATE(T, CONSTANT); GENERATE(T, ARANGE); GENERATE(T, MODULO); GENERATE(T, UNIFORM); GENERATE(T, PATHOLOGICAL)
#define GENERATE_REALS(T) \
    GENERATE_ALL(T); GENERATE(T, NORMAL); GENERATE(T, LOGNORMAL); GENERATE(T, MIXED); GENERATE(T, ALL_EXPONENTS); \
    GENERATE(T, ILL_CONDITIONED)

extern "C" bool generate_by_name(const char* text, int method, void* out, uint64 count, uint64 start, uint64 seed,
                                 double a, double b, double c, uint64 low, uint64 span, uint64 period, uint64 third) {
    const Name name{text};
    const Plan plan{seed, a, b, c, low, span, period, third};
    GENERATE_REALS(float16); GENERATE_REALS(bfloat16); GENERATE_REALS(float32); GENERATE_REALS(float64);
    GENERATE_ALL(int8); GENERATE_ALL(int16); GENERATE_ALL(int32); GENERATE_ALL(int64);
    GENERATE_ALL(uint8); GENERATE_ALL(uint16); GENERATE_ALL(uint32); GENERATE_ALL(uint64); GENERATE_ALL(boolean);
    return false;
}
