// Sums and means of rows of one length that begin and end at multiples of 16 bytes, in the registers of some lanes.
#pragma once
#include "grouped_short.cuh"

template <class T>
struct RowsOf {
    const T* data;
    uint64 rows;
    uint32 length;
};

// The value of one row, which LANES lanes hold in their registers. The first lane gets it, if it is `inside`.
template <class T, int LANES, class Tile>
__device__ __forceinline__ T row_value(Tile& tile, uint32 length, bool inside, const Results<T>& results) {
    using Lanes = Together<LANES>;
    constexpr Counted counted{places_of(Tile::SIZE + 2), places_of(LANES), places_of(places_of(LANES) + 1)};
    if constexpr (sizeof(T) == 4) {
        const Extent<T> extent = Lanes::extent(extent_of(tile));
        const bool plain = extent.all_zero() || (extent.all_finite() && sums_plainly(extent, 32 - __clz(int(length - 1))));
        if (__all_sync(~0u, plain)) {
            const double sum = Lanes::sum(plain_sum(tile));
            return Lanes::lane() == 0 && inside ? results.of_exact({sum, 0}, length) : T(0);
        }
    }
    Sums<T, VALUES> sums;
    sums.add(tile, counted.terms);
    Parts<T, VALUES> all = sums.parts(counted.terms);
    all.template include_lanes<LANES>();
    return Lanes::lane() == 0 && inside ? results.value(all, counted, length) : T(0);
}

// Each group of LANES lanes takes ROWS rows, which it reads before it uses the first. Lane l reads the vectors l, l + LANES, …
// of a row.
template <class T, int LANES, int ROWS, int FLIGHT>
__device__ void sum_rows(const RowsOf<T>& of, const Results<T>& results) {
    constexpr int N = Vector<T>::size;
    const uint32 vectors = of.length / N, groups = blockDim.x / LANES;
    const uint64 first = uint64(blockIdx.x) * groups * ROWS + threadIdx.x / LANES;
    Tile<T, FLIGHT> tiles[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const uint64 row = first + r * groups;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) {
            const uint32 at = Together<LANES>::lane() + k * LANES;
            tiles[r].vectors[k] = row < of.rows && at < vectors ? Vector<T>::load(of.data + row * of.length + at * N)
                                                                : zeros<T>(true);
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const uint64 row = first + r * groups;
        const T value = row_value<T, LANES>(tiles[r], of.length, row < of.rows, results);
        if (Together<LANES>::lane() == 0 && row < of.rows) results.values[row] = value;
    }
}

// The sum or the mean of two elements, whose sum and its error are two doubles whatever the elements are.
__device__ inline float32 pair_value(float32 a, float32 b, bool mean) {
    DoublePair sum = two_sum(a, b);
    if (!(fabs(sum.high) < 0x1p1000)) sum.low = 0;  // infinite or NaN
    const double half = mean ? 0.5 : 1;
    return float(to_odd({sum.high * half, sum.low * half}));
}
// The mean is half of the sum: a double again, or so small that the sum is exact. Where the sum is out of range, halves are added.
__device__ inline float64 pair_value(float64 a, float64 b, bool mean) {
    const double sum = a + b;
    return !mean ? sum : fabs(sum) < 0x1p1000 ? sum * 0.5 : a * 0.5 + b * 0.5;
}

// Rows of two elements, as many as 16 bytes have a read: sums, means, or for MOMENTS deviations, which are half of the distance. The
// last of an odd number of rows of float32 is another launch's.
template <class T, int TERMS, int FLIGHT>
__device__ void sum_pairs(const T* data, uint64 rows, const Results<T>& results) {
    constexpr int PAIRS = Vector<T>::size / 2;
    struct alignas(8) Values {
        T of[PAIRS];
    };
    const uint64 vectors = rows / PAIRS, first = uint64(blockIdx.x) * blockDim.x * FLIGHT + threadIdx.x;
    Vector<T> read[FLIGHT];
#pragma unroll
    for (int k = 0; k < FLIGHT; ++k)
        if (first + k * blockDim.x < vectors) read[k] = Vector<T>::load(data + (first + k * blockDim.x) * Vector<T>::size);
#pragma unroll
    for (int k = 0; k < FLIGHT; ++k) {
        const uint64 at = first + k * blockDim.x;
        if (at >= vectors) return;
        Values values;
#pragma unroll
        for (int row = 0; row < PAIRS; ++row) {
            const T a = read[k][2 * row], b = read[k][2 * row + 1];
            T& out = values.of[row];
            bool certain = true;
            if constexpr (TERMS == MOMENTS) certain = half_distance(out, a, b);
            else out = pair_value(a, b, results.finish == MEAN);
            if (!certain || out != out) {
                const bool nan = a != a || b != b, finite = a - a == 0 && b - b == 0;
                out = finite || (nan && results.omit_nan) ? results.marking() : nan_of<T>();
            }
        }
        reinterpret_cast<Values*>(results.values)[at] = values;
    }
}
