// Sums of spans, which are rows, segments or parts of rows: each group of lanes adds up some of them, one after another. Then each lane
// rounds one. Short spans need no windows where their values are certain without them.
#pragma once
#include "grouped_short.cuh"

// How many terms a lane may have: its elements, and as many again because its windows may move at each tile.
template <int LANES, int SIZE>
__device__ Counted counted_in_span(uint64 count) {
    constexpr int THREADS = LANES == 1 ? 0 : LANES == 2 ? 1 : LANES == 4 ? 2 : LANES == 8 ? 3 : LANES == 16 ? 4 : 5;
    const uint64 tiles = (count + LANES * SIZE - 1) / (LANES * SIZE);
    return {bits_of_count(tiles * (SIZE + 1)), THREADS, bits_of_count(THREADS)};
}

// What there is of a span, in all its lanes, of which each has read `tile` first. The lanes of a warp that have no span call this with
// begin = end.
template <class T, int TERMS, int LANES, bool VECTORS, int FLIGHT>
__device__ Parts<T, TERMS> parts_of_span(const From<T, TERMS>& data, uint64 begin, uint64 end, int bits, TileFrom<T, TERMS, FLIGHT> tile) {
    using Of = Tile<T, FLIGHT>;
    Sums<T, TERMS> sums;
    uint64 at = begin + uint64(Together<LANES>::lane()) * (VECTORS ? Vector<T>::size : 1);
#pragma unroll 1
    while (at < end) {
        sums.add(tile, bits);
        at += uint64(Of::SIZE) * LANES;
        if (at < end) tile = tile_of_span<T, LANES, VECTORS, FLIGHT>(data, at, end);
    }
    __syncwarp();
    Parts<T, TERMS> parts = sums.parts(bits);
    parts.template include_lanes<LANES>();
    return parts;
}
template <class T, int TERMS, int LANES, bool VECTORS, int FLIGHT>
__device__ Parts<T, TERMS> parts_of_span(const From<T, TERMS>& data, uint64 begin, uint64 end, int bits) {
    const uint64 at = begin + uint64(Together<LANES>::lane()) * (VECTORS ? Vector<T>::size : 1);
    return parts_of_span<T, TERMS, LANES, VECTORS, FLIGHT>(data, begin, end, bits,
                                                           tile_of_span<T, LANES, VECTORS, FLIGHT>(data, at, end));
}

// Each group of LANES lanes takes SPANS neighbouring spans, ROUNDS times, and reads ahead if that is little.
template <class T, int TERMS, int LANES, int SPANS, bool VECTORS, int FLIGHT, int ROUNDS>
struct SpansAgent {
    static_assert(SPANS <= LANES);
    static constexpr bool AHEAD = SPANS * FLIGHT <= 8;
    static constexpr uint64 SHORT = uint64(MOST_TERMS) * LANES;
    using Of = TileFrom<T, TERMS, FLIGHT>;
    using First = FirstSums<T, TERMS>;
    From<T, TERMS> data;
    const Spans& spans;
    const Results<T>& results;

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
    template <class Short>
    __device__ Short short_sums(uint64 begin, uint64 end, Of tile) const {
        Short sums;
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

    // Rounds the spans from `first` on that are open, short and certain. Returns whether the span of this lane still is open.
    template <class Short>
    __device__ bool round_short(uint64 first, bool open, const Of* ahead, ShortEnd& end) const {
        const int lane = Together<LANES>::lane();
        Short mine;
        uint64 from = 0, count = 0;
        bool served = false;
#pragma unroll (AHEAD ? SPANS : 1)
        for (int k = 0; k < SPANS; ++k) {
            uint64 begin, stop;
            const bool is_short = short_bounds(first + k, ahead || of_span(open, k), begin, stop);
            const Short sums = short_sums<Short>(begin, stop, ahead ? ahead[k] : read(place(begin), stop));
            if (lane == k) {
                mine = sums;
                from = begin;
                count = stop - begin;
                served = is_short;
            }
        }
        if (!open || !served) return open;
        T out;
        if (!short_value<TERMS>(out, mine, count, end, [&](int k) { return data[from + k]; })) return true;
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
            differ = Together<LANES>::flags(differ);
            if (lane == k) served = !differ && end - begin > results.ddof;
        }
        if (!open || !served) return open;
        results.values[first + lane] = 0;
        return false;
    }

    // Rounds all spans that are open, in windows. A longer one is lost.
    __device__ void round_others(uint64 first, bool open, const Of* ahead) const {
        const int lane = Together<LANES>::lane();
        Parts<T, TERMS> mine;
        Counted counted{0, 0, 0};
        uint64 count = 0;
#pragma unroll (AHEAD && !TRIED<T, TERMS> ? SPANS : 1)
        for (int k = 0; k < SPANS; ++k) {
            const bool is_open = of_span(open, k);
            if (__all_sync(~0u, !is_open)) continue;
            uint64 begin = 0, end = 0;
            if (is_open) spans.bounds(first + k, begin, end);
            const uint64 length = end - begin;
            const bool lost = length > spans.longest;
            if (lost) end = begin;
            const Counted of = counted_in_span<LANES, Of::SIZE>(end - begin);
            Parts<T, TERMS> parts = parts_of_span<T, TERMS, LANES, VECTORS, FLIGHT>(data, begin, end, of.terms,
                                                                                    ahead ? ahead[k] : read(place(begin), end));
            if (lost) parts.met |= Met::LOST;
            if (lane == k) {
                mine = parts;
                counted = of;
                count = length;
            }
        }
        if (open) results.put(first + lane, mine, counted, count);
    }

    __device__ uint64 first_of(int round) const {
        const uint64 groups = blockDim.x / LANES, group = threadIdx.x / LANES;
        return ((blockIdx.x * uint64(ROUNDS) + round) * groups + group) * SPANS;
    }
    __device__ bool is_one(int round) const {
        const int lane = Together<LANES>::lane();
        return lane < SPANS && first_of(round) + lane < spans.count;
    }

    // Rounds what is certain without windows, or all where nothing is tried. Bit r of the result says whether this lane's span of round r
    // still is open.
    __device__ uint32 round_first(ShortEnd& end) const {
        Of ahead[ROUNDS][AHEAD ? SPANS : 1];
        if constexpr (AHEAD) {
#pragma unroll
            for (int round = 0; round < ROUNDS; ++round)
#pragma unroll
                for (int k = 0; k < SPANS; ++k) {
                    uint64 begin = 0, stop = 0;
                    if (TRIED<T, TERMS>) short_bounds(first_of(round) + k, true, begin, stop);
                    else if (first_of(round) + k < spans.count) spans.bounds(first_of(round) + k, begin, stop);
                    ahead[round][k] = read(place(begin), stop);
                }
        }
        uint32 left = 0;
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
            const Of* const tiles = AHEAD ? ahead[round] : nullptr;
            if constexpr (TRIED<T, TERMS>) left |= uint32(round_short<First>(first_of(round), is_one(round), tiles, end)) << round;
            else round_others(first_of(round), is_one(round), tiles);
        }
        return left;
    }

    // Rounds the others.
    __device__ void round_left(uint32 left, ShortEnd& end) const {
#pragma unroll 1
        for (int round = 0; round < ROUNDS; ++round) {
            bool open = left >> round & 1;
            if (__all_sync(~0u, !open)) continue;
            const uint64 first = first_of(round);
            if constexpr (TERMS == MOMENTS) {
                if constexpr (!is_same<First, PairSquares<T, TERMS>>) open = round_short<PairSquares<T, TERMS>>(first, open, nullptr, end);
                open = round_equal(first, open);
            }
            if (!__all_sync(~0u, !open)) round_others(first, open, nullptr);
        }
    }

    __device__ void run() const {
        ShortEnd end{results.finish, results.ddof};
        if (TERMS == MOMENTS && !spans.offsets) end.set(spans.length);
        const uint32 left = round_first(end);
        if constexpr (TRIED<T, TERMS>) round_left(left, end);
    }
};
