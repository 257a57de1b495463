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
    return {bits_of_count(tiles * (SIZE + 1)), THREADS, bits_of_count(THREADS)};
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

// Each group of LANES lanes takes SPANS neighbouring spans, ROUNDS times, and reads ahead if that is little.
template <class T, bool VALUED, int LANES, int SPANS, bool VECTORS, int FLIGHT, int ROUNDS>
struct SquareSpans {
    static_assert(SPANS <= LANES);
    static constexpr bool AHEAD = SPANS * FLIGHT <= 8;
    static constexpr uint64 SHORT = uint64(MOST_TERMS) * LANES;
    using Of = Tile<T, FLIGHT>;
    using First = FirstSquares<T, VALUED>;
    const T* data;
    const Spans& spans;
    const SpreadResults<T>& results;

    // The elements of a span that is short; none of others.
    __device__ bool short_bounds(uint64 span, bool is_one, uint64& begin, uint64& end) const {
        begin = end = 0;
        if (is_one && span < spans.count) spans.bounds(span, begin, end);
        const bool is_short = end - begin <= SHORT && end - begin <= spans.longest;
        if (!is_short) end = begin;
        return is_short;
    }
    __device__ Of read(uint64 at, uint64 end) const { return tile_of_span<T, LANES, VECTORS, FLIGHT>(data, at, end); }
    static __device__ uint64 place(uint64 begin) { return begin + uint64(Together<LANES>::lane()) * (VECTORS ? Vector<T>::size : 1); }
    // Whether span k of this group is open, which its lane k knows.
    static __device__ bool of_span(bool open, int k) { return __shfl_sync(~0u, open, threadIdx.x % 32 / LANES * LANES + k); }

    // The sums of a short span, in all its lanes. A lane reads `tile` first.
    template <class Sums>
    __device__ Sums short_sums(uint64 begin, uint64 end, Of tile) const {
        Sums sums;
        uint64 at = place(begin);
        while (true) {
#pragma unroll
            for (int k = 0; k < Of::SIZE; ++k) sums.add(tile[k]);
            at += uint64(Of::SIZE) * LANES;
            if (at >= end) break;
            tile = read(at, end);
        }
        __syncwarp();
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2) sums.include_lane(distance);
        return sums;
    }

    // The value of a span from its sums; false where it is not certain.
    template <class Sums>
    __device__ bool short_value(T& out, const Sums& sums, uint64 begin, uint64 count, ShortEnd& end) const {
        if constexpr (VALUED) {
            if (count <= end.ddof) return out = nan_of<T>(), sums.finite();
            if (count == 1) return out = 0, sums.finite();
            if (end.is_half(count)) return half_distance(out, data[begin], data[begin + 1]);
            if (count != end.count) end.set(count);
        }
        return sums.value(out, end);
    }

    // Rounds the spans from `first` on that are open, short and certain. Returns whether the span of this lane still is open.
    template <class Sums>
    __device__ bool round_short(uint64 first, bool open, const Of* ahead, ShortEnd& end) const {
        const int lane = Together<LANES>::lane();
        Sums mine;
        uint64 from = 0, count = 0;
        bool served = false;
#pragma unroll (AHEAD ? SPANS : 1)
        for (int k = 0; k < SPANS; ++k) {
            uint64 begin, stop;
            const bool is_short = short_bounds(first + k, ahead || of_span(open, k), begin, stop);
            const Sums sums = short_sums<Sums>(begin, stop, ahead ? ahead[k] : read(place(begin), stop));
            if (lane == k) {
                mine = sums;
                from = begin;
                count = stop - begin;
                served = is_short;
            }
        }
        if (!open || !served) return open;
        T out;
        if (!short_value(out, mine, from, count, end)) return true;
        results.values[first + lane] = out;
        return false;
    }

    // The same for spans of equal elements, whose variance is 0.
    __device__ bool round_equal(uint64 first, bool open) const {
        const int lane = Together<LANES>::lane();
        bool served = false;
#pragma unroll 1
        for (int k = 0; k < SPANS; ++k) {
            uint64 begin, end;
            short_bounds(first + k, of_span(open, k), begin, end);
            bool differ = begin == end;
            const T one = differ ? T(0) : data[begin];
            for (uint64 at = begin + lane; at < end; at += LANES) differ = differ || !(data[at] - one == 0);  // nor is it of infinities
            __syncwarp();
            differ = Together<LANES>::any(differ);
            if (lane == k) served = !differ && end - begin > results.ddof;
        }
        if (!open || !served) return open;
        results.values[first + lane] = 0;
        return false;
    }

    // Rounds all spans that are open.
    __device__ void round_others(uint64 first, bool open) const {
        const int lane = Together<LANES>::lane();
        SquareParts<T> mine;
        Counted counted{0, 0, 0};
        uint64 count = 0;
#pragma unroll 1
        for (int k = 0; k < SPANS; ++k) {
            const bool is_open = of_span(open, k);
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
        const int lane = Together<LANES>::lane();
        const auto first_of = [&](int round) { return ((blockIdx.x * uint64(ROUNDS) + round) * groups + group) * SPANS; };
        Of ahead[ROUNDS][AHEAD ? SPANS : 1];
        if constexpr (AHEAD) {
#pragma unroll
            for (int round = 0; round < ROUNDS; ++round)
#pragma unroll
                for (int k = 0; k < SPANS; ++k) {
                    uint64 begin, end;
                    short_bounds(first_of(round) + k, true, begin, end);
                    ahead[round][k] = read(place(begin), end);
                }
        }
        ShortEnd end{results.finish, results.ddof};
        if (VALUED && !spans.offsets) end.set(spans.length);
        uint32 left = 0;
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
            const bool is_one = lane < SPANS && first_of(round) + lane < spans.count;
            left |= uint32(round_short<First>(first_of(round), is_one, AHEAD ? ahead[round] : nullptr, end)) << round;
        }
#pragma unroll 1
        for (int round = 0; round < ROUNDS; ++round) {
            bool open = left >> round & 1;
            if (__all_sync(~0u, !open)) continue;
            const uint64 first = first_of(round);
            if constexpr (VALUED && !is_same<First, PairSquares<T, VALUED>>) open = round_short<PairSquares<T, VALUED>>(first, open, nullptr, end);
            if (VALUED) open = round_equal(first, open);
            if (!__all_sync(~0u, !open)) round_others(first, open);
        }
    }
};
