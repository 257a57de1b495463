// Which exponents a tile has.
#pragma once
#include "exact_tiles.cuh"
#include "exact_window.cuh"

// The magnitude of an element as an integer of 32 bits that is 0 only for zero and grows with it; the exponent field
// begins at bit KEY_SHIFT.
__device__ inline uint32 key_of(float x) { return __float_as_uint(x) & 0x7fffffffu; }
__device__ inline uint32 key_of(double x) {
    const uint64 bits = __double_as_longlong(x);
    const uint32 low = uint32(bits);
    return (uint32(bits >> 32) & 0x7fffffffu) | (low < 1 ? low : 1);
}
template <class T>
constexpr int KEY_SHIFT = sizeof(T) == 8 ? 20 : 23;
template <class T>
constexpr int KEY_BIAS = sizeof(T) == 8 ? 1023 : 127;
template <class T>
constexpr int KEY_LIMIT = sizeof(T) == 8 ? 2047 : 255;  // the field of infinities and NaNs

// The exponent of a key. Subnormals have that of the smallest normal numbers, of whose last place they are multiples.
template <class T>
__device__ int exponent_of(uint32 key) {
    const int field = key >> KEY_SHIFT<T>;
    return (field ? field : 1) - KEY_BIAS<T>;
}

// The largest key of a tile, and the smallest that is not zero, less one: two integer comparisons an element.
template <class T>
struct Span {
    uint32 largest = 0, smallest = ~0u;

    template <int FLIGHT>
    __device__ explicit Span(const Tile<T, FLIGHT>& tile) {
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const uint32 key = key_of(widen(tile[at]));
            largest = largest > key ? largest : key;
            smallest = smallest < key - 1 ? smallest : key - 1;
        }
    }
    __device__ bool all_zero() const { return largest == 0; }
    __device__ bool all_finite() const { return largest < uint32(KEY_LIMIT<T>) << KEY_SHIFT<T>; }
    __device__ int highest() const { return exponent_of<T>(largest); }
    __device__ int lowest() const { return exponent_of<T>(smallest + 1); }
    __device__ Range range() const { return {lowest(), highest()}; }
};

// A range of exponents, as keys to be compared with those of a span. It starts as the empty one.
template <class T>
struct Gate {
    uint32 floor = 0, ceiling = 0;

    Gate() = default;
    __device__ explicit Gate(const Range& range) {
        const int low = range.lowest + KEY_BIAS<T>, high = range.highest + KEY_BIAS<T>;
        floor = low <= 1 ? 0 : (uint32(low) << KEY_SHIFT<T>) - 1;
        ceiling = uint32(high < KEY_LIMIT<T> ? high + 1 : KEY_LIMIT<T>) << KEY_SHIFT<T>;
    }
    __device__ bool empty() const { return ceiling == 0; }
    __device__ bool admits(const Span<T>& span) const { return span.smallest >= floor && span.largest < ceiling; }
    __device__ bool admits(uint32 key) const { return key - 1 >= floor && key < ceiling; }
};

// The top of the window of `Terms` in whose middle the exponents lie; false if no window holds them.
template <class Terms>
__device__ bool window_around(const Range& exponents, int& top, Range& window) {
    top = exponents.highest;
    const int spare = Terms::range(top).length() - exponents.length();
    if (spare < 0) return false;
    top += spare / 2;
    window = Terms::range(top);
    return window.holds(exponents);
}
