// Sums of squares, alone or with values, of rows and of segments: each group of lanes adds up some spans (grouped_rows.cuh), one
// after another. Then each lane rounds one of them. Short spans need no windows where their values are certain without them.
#pragma once
#include "grouped_rows.cuh"
#include "grouped_square_short.cuh"

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

// The sums of a short span, in all its lanes. `read` has what a lane reads first.
template <class T, bool VALUED, int LANES, bool VECTORS, int FLIGHT>
__device__ ShortSquares<T, VALUED> short_squares(const T* data, uint64 at, uint64 end, const Tile<T, FLIGHT>& read) {
    using Of = Tile<T, FLIGHT>;
    ShortSquares<T, VALUED> sums;
    Of tile = read;
    while (true) {
#pragma unroll
        for (int k = 0; k < Of::SIZE; ++k) sums.add(tile[k]);
        at += uint64(Of::SIZE) * LANES;
        if (at >= end) break;
        tile = tile_of_span<T, LANES, VECTORS, FLIGHT>(data, at, end);
    }
    __syncwarp();
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2) sums.include_lane(distance);
    return sums;
}

// Each group of LANES lanes takes SPANS neighbouring spans, ROUNDS times, and reads ahead if that is little.
template <class T, bool VALUED, int LANES, int SPANS, bool VECTORS, int FLIGHT, int ROUNDS>
struct SquareSpans {
    static_assert(SPANS <= LANES);
    static constexpr int WIDTH = VECTORS ? Vector<T>::size : 1;
    static constexpr int AHEAD = SPANS * FLIGHT <= 8 ? SPANS : 1;
    static constexpr uint64 SHORT = uint64(MOST_TERMS) * LANES;
    using Of = Tile<T, FLIGHT>;
    const T* data;
    const Spans& spans;
    const SpreadResults<T>& results;

    // The elements of a span that is short; none of others.
    __device__ bool short_bounds(uint64 span, uint64& begin, uint64& end) const {
        begin = end = 0;
        if (span < spans.count) spans.bounds(span, begin, end);
        const bool is_short = end - begin <= SHORT && end - begin <= spans.longest;
        if (!is_short) end = begin;
        return is_short;
    }

    // Rounds the spans from `first` on that are short and certain. Returns whether the span of this lane is neither.
    __device__ bool round_short(uint64 first, const Of (&read)[AHEAD]) const {
        const int lane = Together<LANES>::lane();
        ShortSquares<T, VALUED> mine;
        uint64 count = 0;
        bool served = false;
#pragma unroll AHEAD
        for (int k = 0; k < SPANS; ++k) {
            uint64 begin, end;
            const bool is_short = short_bounds(first + k, begin, end);
            const uint64 at = begin + uint64(lane) * WIDTH;
            const ShortSquares<T, VALUED> sums =
                short_squares<T, VALUED, LANES, VECTORS, FLIGHT>(data, at, end, AHEAD == SPANS ? read[k % AHEAD] : tile_of_span<T, LANES, VECTORS, FLIGHT>(data, at, end));
            if (lane == k) {
                mine = sums;
                count = end - begin;
                served = is_short;
            }
        }
        if (lane >= SPANS || first + lane >= spans.count) return false;
        T out;
        if (!served || !mine.value(out, results.finish, count, results.ddof)) return true;
        results.values[first + lane] = out;
        return false;
    }

    // Rounds the spans of the lanes that are `open`.
    __device__ void round_others(uint64 first, bool open) const {
        const int lane = Together<LANES>::lane();
        SquareParts<T> mine;
        Counted counted{0, 0};
        uint64 count = 0;
#pragma unroll 1
        for (int k = 0; k < SPANS; ++k) {
            const bool is_open = __shfl_sync(~0u, open, threadIdx.x % 32 / LANES * LANES + k);
            if (__all_sync(~0u, !is_open)) continue;
            uint64 begin = 0, end = 0;
            if (is_open) spans.bounds(first + k, begin, end);
            const uint64 length = end - begin;
            if (length > spans.longest) end = begin;
            const Counted of = counted_in_span<LANES, Of::SIZE>(length);
            SquareParts<T> parts = squares_of_span<T, VALUED, LANES, VECTORS, FLIGHT>(data, begin, end, of);
            parts.lost |= length > spans.longest;
            if (lane == k) {
                mine = parts;
                counted = of;
                count = length;
            }
        }
        if (open) results.template put<VALUED>(first + lane, mine, counted, count);
    }

    __device__ void run() const {
        const uint64 groups = blockDim.x / LANES, group = threadIdx.x / LANES;
        const auto first_of = [&](int round) { return ((blockIdx.x * uint64(ROUNDS) + round) * groups + group) * SPANS; };
        Of read[ROUNDS][AHEAD];
        if constexpr (AHEAD == SPANS) {
#pragma unroll
            for (int round = 0; round < ROUNDS; ++round)
#pragma unroll
                for (int k = 0; k < SPANS; ++k) {
                    uint64 begin, end;
                    short_bounds(first_of(round) + k, begin, end);
                    read[round][k] = tile_of_span<T, LANES, VECTORS, FLIGHT>(data, begin + uint64(Together<LANES>::lane()) * WIDTH, end);
                }
        }
        uint32 open = 0;
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) open |= uint32(round_short(first_of(round), read[round])) << round;
        if (__all_sync(~0u, !open)) return;
#pragma unroll 1
        for (int round = 0; round < ROUNDS; ++round) round_others(first_of(round), open >> round & 1);
    }
};
