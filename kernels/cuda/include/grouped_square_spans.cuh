// Sums of squares, alone or with values, of rows and of segments: each group of lanes adds up some spans (grouped_rows.cuh), one
// after another. Then each lane rounds one of them.
#pragma once
#include "grouped_rows.cuh"
#include "grouped_spread.cuh"

// Where values go, and what becomes of them.
template <class T>
struct SpreadResults {
    T* values;
    uint32* marked;  // how many values are marked
    uint64 finish, ddof;
    bool omit_nan;

    template <bool VALUED>
    __device__ void put(uint64 at, const SquareParts<T>& of, const Counted& counted, uint64 count) const {
        T out;
        if (!spread_value<VALUED>(out, of, counted, finish, count, ddof, omit_nan)) {
            atomicAdd(marked, 1u);
            out = mark<T>();
        }
        values[at] = out;
    }
};

// The bits of a number: the least for which 2^bits is more.
__device__ inline int bits_of_count(uint64 count) { return 64 - __clzll(int64(count)); }

template <int LANES>
struct SquaresTogether {
    static __device__ Halves sum(Halves mine) {
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2)
            mine.include({__shfl_xor_sync(~0u, mine.upper, distance), __shfl_xor_sync(~0u, mine.lower, distance)});
        return mine;
    }
    template <bool VALUED, class T>
    static __device__ SquareParts<T> sum(SquareParts<T> mine) {
        using Lanes = Together<LANES>;
        if (VALUED) mine.values = sum(mine.values);
        mine.squares = sum(mine.squares);
        if (sizeof(T) == 8) mine.errors = sum(mine.errors);
        mine.extent = Lanes::extent(mine.extent);
        if (__all_sync(~0u, !mine.nan && !mine.infinite && !mine.lost)) return mine;
        mine.nan = Lanes::any(mine.nan);
        mine.infinite = Lanes::any(mine.infinite);
        mine.lost = Lanes::any(mine.lost);
        return mine;
    }
};

// How many terms a lane may have: its elements, and as many again because its windows may move at each tile.
template <int LANES, int SIZE>
__device__ Counted counted_in_span(uint64 count) {
    constexpr int THREADS = LANES == 1 ? 0 : LANES == 2 ? 1 : LANES == 4 ? 2 : LANES == 8 ? 3 : LANES == 16 ? 4 : 5;
    const uint64 tiles = (count + LANES * SIZE - 1) / (LANES * SIZE);
    return {bits_of_count(tiles * (SIZE + 1)), THREADS};
}

// The sums of a span, in all its lanes. The lanes of a warp that have no span call this with begin = end.
template <class T, bool VALUED, int LANES, bool VECTORS, int FLIGHT>
__device__ SquareParts<T> squares_of_span(const T* data, uint64 begin, uint64 end, const Counted& counted) {
    constexpr int WIDTH = VECTORS ? Vector<T>::size : 1;
    using Of = Tile<T, FLIGHT>;
    SquareSums<T, VALUED> sums;
#pragma unroll 1
    for (uint64 at = begin + uint64(Together<LANES>::lane()) * WIDTH; at < end; at += uint64(Of::SIZE) * LANES) {
        Of tile = tile_of_span<T, LANES, VECTORS, FLIGHT>(data, at, end);
        sums.add(tile, counted.terms);
    }
    __syncwarp();
    return SquaresTogether<LANES>::template sum<VALUED>(sums.parts(counted.terms));
}

// Each group of lanes takes SPANS neighbouring spans.
template <class T, bool VALUED, int LANES, int SPANS, bool VECTORS, int FLIGHT>
__device__ void sum_square_spans(const T* data, const Spans& spans, const SpreadResults<T>& results) {
    static_assert(SPANS <= LANES);
    const uint64 group = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / LANES, first = group * SPANS;
    const int lane = Together<LANES>::lane();
    SquareParts<T> mine;
    Counted counted{0, 0};
    uint64 count = 0;
#pragma unroll 1
    for (int k = 0; k < SPANS; ++k) {
        uint64 begin = 0, end = 0;
        if (first + k < spans.count) spans.bounds(first + k, begin, end);
        const uint64 length = end - begin;
        if (length > spans.longest) end = begin;
        const Counted of = counted_in_span<LANES, Tile<T, FLIGHT>::SIZE>(length);
        SquareParts<T> parts = squares_of_span<T, VALUED, LANES, VECTORS, FLIGHT>(data, begin, end, of);
        parts.lost |= length > spans.longest;
        if (lane == k) {
            mine = parts;
            counted = of;
            count = length;
        }
    }
    if (lane < SPANS && first + lane < spans.count) results.template put<VALUED>(first + lane, mine, counted, count);
}
