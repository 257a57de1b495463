// Extrema: the smallest and the largest element, and where they are. NaN beats every number. −0 is below +0 in min and max,
// and equal to it in argmin and argmax. Of equal elements the lowest index counts.
#pragma once
#include "elements.cuh"
#include "outcome.cuh"

__device__ inline float least(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float c;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return a != a ? a : b != b ? b : fminf(a, b);
#endif
}
__device__ inline float greatest(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return a != a ? a : b != b ? b : fmaxf(a, b);
#endif
}
__device__ inline double least(double a, double b) {
    if (a == b) return __longlong_as_double(__double_as_longlong(a) | __double_as_longlong(b));  // −0 wins
    return a < b || a != a ? a : b;
}
__device__ inline double greatest(double a, double b) {
    if (a == b) return __longlong_as_double(__double_as_longlong(a) & __double_as_longlong(b));  // +0 wins
    return a > b || a != a ? a : b;
}
template <class I>
__device__ I least(I a, I b) { return a < b ? a : b; }
template <class I>
__device__ I greatest(I a, I b) { return a > b ? a : b; }

// The smallest and the largest value of a type.
template <class V>
__device__ V lowest() {
    return V(-1) < V(0) ? V(V(1) << (8 * sizeof(V) - 1)) : V(0);
}
template <class V>
__device__ V highest() {
    return V(~lowest<V>());
}
template <>
__device__ inline float lowest<float>() { return __uint_as_float(0xff800000u); }
template <>
__device__ inline float highest<float>() { return __uint_as_float(0x7f800000u); }
template <>
__device__ inline double lowest<double>() { return __longlong_as_double(0xfff0000000000000ll); }
template <>
__device__ inline double highest<double>() { return __longlong_as_double(0x7ff0000000000000ll); }

__device__ inline void store_value(uint64* words, double x) { store_real(words, x); }
__device__ inline void store_value(uint64* words, float x) { store_real(words, x); }
template <class I>
__device__ void store_value(uint64* words, I x) { store_integer(words, x); }

template <class V>
struct Smallest {
    V value;
    static __device__ Smallest identity() { return {highest<V>()}; }
    __device__ void add(V x) { value = least(value, x); }
    __device__ void merge(const Smallest& other) { add(other.value); }
    __device__ void store(uint64* words) const { store_value(words, value); }
};

template <class V>
struct Largest {
    V value;
    static __device__ Largest identity() { return {lowest<V>()}; }
    __device__ void add(V x) { value = greatest(value, x); }
    __device__ void merge(const Largest& other) { add(other.value); }
    __device__ void store(uint64* words) const { store_value(words, value); }
};

// Unsigned integers that order like the numbers. Those of floats leave both ends free: 0 stands for NaN, and all ones
// for an element to leave out.
__device__ inline uint32 rank(int32 x) { return uint32(x) ^ 0x80000000u; }
__device__ inline uint32 rank(uint32 x) { return x; }
__device__ inline uint64 rank(int64 x) { return uint64(x) ^ 0x8000000000000000ull; }
__device__ inline uint64 rank(uint64 x) { return x; }
__device__ inline uint32 rank(float x) {
    const int32 bits = __float_as_int(x + 0.0f);  // −0 becomes +0
    return uint32(bits ^ (bits >> 31 | int32(0x80000000)));
}
__device__ inline uint64 rank(double x) {
    const int64 bits = __double_as_longlong(x + 0.0);
    return uint64(bits ^ (bits >> 63 | int64(0x8000000000000000ull)));
}

constexpr uint64 NOWHERE = ~0ull;

// The element of lowest key and, of those, of lowest index. Elements must come in order of their index. Packed, so that
// no byte of it is ever read unwritten when it moves word by word.
template <class Key>
struct __attribute__((packed, aligned(4))) Place {
    Key key;
    uint64 index;
    static __device__ Place identity() { return {Key(~Key(0)), NOWHERE}; }
    __device__ void add(Key candidate, uint64 at) {
        if (candidate < key) {
            key = candidate;
            index = at;
        }
    }
    __device__ void merge(const Place& other) {
        if (other.key < key || (other.key == key && other.index < index)) *this = other;
    }
    __device__ void store(uint64* words) const {
        words[0] = index;
        words[1] = key;
        words[2] = words[3] = 0;
    }
};
