// Spans: which exponents a tile has.
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

// A lower bound of the exponent of a factor. The product of float64 is rounded to its own last place, for which the size of a
// subnormal counts: at least 2^-1074.
template <class T>
__device__ int factor_of(uint32 key) {
    return sizeof(T) == 8 && key >> KEY_SHIFT<T> == 0 ? -1074 : exponent_of<T>(key);
}

// The largest key of some elements, and the smallest that is not zero, less one.
template <class T>
struct Extent {
    uint32 largest = 0, smallest = ~0u;

    __device__ bool all_zero() const { return largest == 0; }
    __device__ bool all_finite() const { return largest < uint32(KEY_LIMIT<T>) << KEY_SHIFT<T>; }
    __device__ int highest() const { return exponent_of<T>(largest); }
    __device__ int lowest() const { return exponent_of<T>(smallest + 1); }
    __device__ int lowest_factor() const { return factor_of<T>(smallest + 1); }
    __device__ Range range() const { return {lowest(), highest()}; }

    __device__ void include(const Extent& other) {
        largest = largest > other.largest ? largest : other.largest;
        smallest = smallest < other.smallest ? smallest : other.smallest;
    }
    // The extent of all lanes; all must take part.
    __device__ Extent of_warp() const {
        Extent all = *this;
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            all.include({__shfl_xor_sync(~0u, all.largest, distance), __shfl_xor_sync(~0u, all.smallest, distance)});
        return all;
    }
};

// The extent of a tile, by two integer comparisons an element.
template <class T, int FLIGHT>
__device__ Extent<T> extent_of(const Tile<T, FLIGHT>& tile) {
    Extent<T> found;
#pragma unroll
    for (int at = 0; at < tile.SIZE; ++at) {
        const uint32 key = key_of(widen(tile[at]));
        found.include({key, key - 1});
    }
    return found;
}

// The same for two elements at a time. With the sign set, halves are 0x8000 for zero, and more for others; less one, zero is the
// largest of them as signed numbers.
template <int FLIGHT>
__device__ Extent<bfloat16> extent_of(const Tile<bfloat16, FLIGHT>& tile) {
    uint32 largest = 0x80008000u, smallest = 0x7fff7fffu;
#pragma unroll
    for (int k = 0; k < FLIGHT; ++k)
#pragma unroll
        for (uint32 word : tile.vectors[k].words) {
            const uint32 pair = word | 0x80008000u;
            largest = __vmaxu2(largest, pair);
            smallest = __vmins2(smallest, pair - 0x00010001u);
        }
    largest = __vmaxu2(largest, largest >> 16);
    smallest = __vmins2(smallest, smallest >> 16 | smallest << 16);
    return {(largest & 0x7fffu) << 16, (((smallest + 1) & 0x7fffu) << 16) - 1};
}

// A range of exponents, as keys to be compared with those of an extent. It starts as the empty one.
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
    __device__ bool admits(const Extent<T>& extent) const { return extent.smallest >= floor && extent.largest < ceiling; }
    __device__ bool admits(uint32 key) const { return key - 1 >= floor && key < ceiling; }
};

// The top of the window of `Terms` in whose middle the exponents lie; false if no window holds them.
template <class Terms>
__device__ bool window_around(const Range& exponents, int& top) {
    top = exponents.highest;
    const int spare = Terms::range(top).length() - exponents.length();
    top += spare / 2;
    return spare >= 0 && Terms::range(top).holds(exponents);
}

// The same for narrow terms with exponents to spare, but nearer to the top: what comes later is more often nearer to zero
// than larger.
template <class Terms>
__device__ bool narrow_around(const Range& exponents, int& top, int least_spare) {
    top = exponents.highest;
    const int spare = Terms::narrow(top).length() - exponents.length();
    top += (spare + 2) / 3;
    return spare >= least_spare && Terms::narrow(top).holds(exponents);
}

// Whether the exponents of a tile reach so far that most of its elements lie outside of any window of `Terms`.
// Then all are added slowly: to ask for each would part the lanes of nearly every warp, which would go both ways.
template <class Terms>
__device__ bool far_apart(const Range& exponents) {
    return exponents.length() > 2 * Terms::range(0).length();
}
