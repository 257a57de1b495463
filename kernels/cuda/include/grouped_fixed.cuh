// Windows of elements whose exponents span little, for segments as one stream (grouped_stream.cuh): what is added up of an element
// are plain doubles whose sums are exact.
//
// Elements of exponents lowest … lowest + SPAN are multiples of a unit. Those of a lane sum up to at most 2^51 units, and what is
// added to this, the sums of lanes before and what is carried, is only trusted where it comes out at 2^51 units at most: so every
// difference of two prefix sums is below 2^53 units, and no addition rounds. A tile of at most 512 elements of exponents
// lowest … lowest + SPAN − OVER surely comes out so.
#pragma once
#include "grouped_value.cuh"

template <class T>
struct FixedWindow;

template <>
struct FixedWindow<float32> {
    static constexpr int PLANES = 1, SPAN = 23, OVER = 5;
    int lowest = 1 << 20;
    double limit[1] = {};

    __device__ bool start(int exponent) {
        lowest = exponent;
        limit[0] = power(lowest - 23 + 51);
        return true;
    }
    __device__ void split(float32 x, double (&parts)[1]) const { parts[0] = x; }
    static __device__ double power(int exponent) { return __longlong_as_double(int64(exponent + 1023) << 52); }

    // The sum or the mean of so many elements.
    template <bool MEAN>
    static __device__ float32 value(const Results<float32>& results, const double (&sum)[1], uint64 count) {
        return MEAN ? results.of_exact({sum[0], 0}, count) : float(sum[0]);
    }
};

// An element of float64 is a multiple of 2^(lowest − 10) and a remainder of at most half of that, which is one of 2^(lowest − 52).
template <>
struct FixedWindow<float64> {
    static constexpr int PLANES = 2, SPAN = 37, OVER = 6;
    int lowest = 1 << 20;
    double anchor = 0, limit[2] = {};

    __device__ bool start(int exponent) {
        lowest = exponent;
        if (lowest < -960 || lowest > 900) return false;
        anchor = Window<2, 0, 0, 11>::bias(lowest - 10, 0);
        limit[0] = FixedWindow<float32>::power(lowest - 10 + 51);
        limit[1] = FixedWindow<float32>::power(lowest - 52 + 51);
        return true;
    }
    __device__ void split(float64 x, double (&parts)[2]) const {
        const double sum = anchor + x;
        parts[0] = sum - anchor;
        parts[1] = x - parts[0];
    }

    template <bool MEAN>
    static __device__ float64 value(const Results<float64>& results, const double (&sum)[2], uint64 count) {
        const DoublePair pair = two_sum(sum[0], sum[1]);
        return MEAN ? results.of_exact(pair, count) : pair.high;  // rounded once
    }
};

// The extent of a tile, at the cost of two operations an element where none is zero.
template <int FLIGHT>
__device__ Extent<float32> quick_extent(const Tile<float32, FLIGHT>& tile) {
    float most = 0, least = 3.0e38f;  // of NaN neither knows, but every sum with it does
#pragma unroll
    for (int at = 0; at < tile.SIZE; ++at) {
        most = fmaxf(most, fabsf(tile[at]));
        least = fminf(least, fabsf(tile[at]));
    }
    if (least == 0) return extent_of(tile);
    return {__float_as_uint(most), __float_as_uint(least) - 1};
}
template <int FLIGHT>
__device__ Extent<float64> quick_extent(const Tile<float64, FLIGHT>& tile) {
    uint32 most = 0, least = ~0u;
#pragma unroll
    for (int at = 0; at < tile.SIZE; ++at) {
        const uint32 high = uint32(uint64(__double_as_longlong(tile[at])) >> 32) & 0x7fffffffu;
        most = most > high ? most : high;
        least = least < high ? least : high;
    }
    if (least == 0) return extent_of(tile);
    return {most, least - 1};
}
