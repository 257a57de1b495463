// Segments that a stream (grouped_stream.cuh) leaves to another launch: those of tiles of too many exponents, of infinities and NaNs.
//
// Neighbouring ones are one entry of a list. Its first word says how many entries there are; an entry is the first segment's number
// times 2^16, and how many segments there are. Some warps share an entry, for a tile may end 100 segments, and few tiles are left.
// What finds no room in the list is looked for.
#pragma once
#include "grouped_spans.cuh"

constexpr uint32 LEFT_ROOM = 1 << 13, LEFT_PLACES = 16;
constexpr uint32 MOST_SHARES = 16;  // warps that share the segments of an entry where there are enough

// The value of a segment that is left: a NaN whose bits no result has.
template <class T>
__device__ T later() {
    T value;
    set_bits(value, sizeof(T) == 8 ? 0x7ff8'6c61'7465'7200ull : 0x7fc6'6c74ull);
    return value;
}

__device__ inline void leave(uint64* left, uint64 first, uint32 count) {
    const uint64 at = atomicAdd(left, uint64(1));
    if (at < LEFT_ROOM) left[1 + at] = first << LEFT_PLACES | count;
}

// Adds up the segments that were left to later, if there are any, and empties the list. The grid has any number of blocks, of which
// the last word of the list counts those that are done.
template <class T, int LANES, int FLIGHT>
__device__ void sum_left(const T* data, const Spans& spans, const Results<T>& results, uint64* left) {
    constexpr uint32 TOGETHER = 32 / LANES;
    const uint64 entries = *left, warps = uint64(gridDim.x) * (blockDim.x / 32);
    const uint64 warp = uint64(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    const uint32 mine = threadIdx.x % 32 / LANES;
    if (!entries) return;
    const bool listed = entries <= LEFT_ROOM;
    const uint32 shares = !listed || entries > warps ? 1 : warps / entries < MOST_SHARES ? uint32(warps / entries) : MOST_SHARES;
    const uint64 rounds = listed ? entries * shares : (spans.count + TOGETHER - 1) / TOGETHER;
#pragma unroll 1
    for (uint64 round = warp; round < rounds; round += warps) {
        const uint64 entry = listed ? left[1 + uint32(round) / shares] : round * TOGETHER << LEFT_PLACES | TOGETHER;
        const uint32 count = uint32(entry) % (1u << LEFT_PLACES);
#pragma unroll 1
        for (uint32 k = uint32(round) % shares * TOGETHER; k < count; k += TOGETHER * shares) {
            const uint64 at = (entry >> LEFT_PLACES) + k + mine;
            const bool is_one = k + mine < count && at < spans.count && bits_of(results.values[at]) == bits_of(later<T>());
            __syncwarp();
            if (__all_sync(~0u, !is_one)) continue;
            uint64 begin = 0, end = 0;
            if (is_one) spans.bounds(at, begin, end);
            const Counted counted = counted_in_span<LANES, Tile<T, FLIGHT>::SIZE>(end - begin);
            Parts<T, VALUES> parts = parts_of_span<T, VALUES, LANES, false, FLIGHT>(data, begin, end, counted.terms);
            if (Together<LANES>::lane() == 0 && is_one) results.put(at, parts, counted, end - begin);
        }
    }
    uint64* const done = left + 1 + LEFT_ROOM;
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(done, uint64(1)) == gridDim.x - 1) *left = *done = 0;
}
