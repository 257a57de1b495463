// Elements put into buckets by their codes, in one pass or in two: any order within a bucket will do, because sums do not show it.
#pragma once
#include "keyed_sums.cuh"

// Counts the codes of each bucket of 2^bits codes; `counts` has a word of shared memory for each.
template <class K, int THREADS>
__device__ void count_buckets(const K* keys, uint64 count, uint64 span, const Codes<K>& codes, uint32 bits, uint32 buckets,
                              uint32* sizes, uint32* notes, uint32* counts) {
    constexpr int N = 16 / sizeof(K) > 4 ? 4 : 16 / sizeof(K), READS = 4;
    constexpr uint64 TILE = THREADS * N * READS;
    for (uint32 at = threadIdx.x; at < buckets; at += THREADS) counts[at] = 0;
    __syncthreads();
    const uint64 begin = blockIdx.x * span, end = begin + span < count ? begin + span : count;
    const uint64 whole = begin + (end - begin) / TILE * TILE;
    bool missed = false;
    const auto add = [&](K key) {
        uint32 code;
        if (codes.of(key, code))
            atomicAdd(counts + (code >> bits), 1u);
        else
            missed = true;
    };
#pragma unroll 1
    for (uint64 at = begin + threadIdx.x * N; at < whole; at += TILE) {
        K key[READS][N];
#pragma unroll
        for (int k = 0; k < READS; ++k) read_together(keys + at + k * THREADS * N, key[k]);
#pragma unroll
        for (int k = 0; k < READS; ++k)
#pragma unroll
            for (int n = 0; n < N; ++n) add(key[k][n]);
    }
#pragma unroll 1
    for (uint64 at = whole + threadIdx.x; at < end; at += THREADS) add(keys[at]);
    if (missed) notes[MISSED] = 1;
    __syncthreads();
    for (uint32 at = threadIdx.x; at < buckets; at += THREADS)
        if (counts[at]) atomicAdd(sizes + at, counts[at]);
}

// One block makes starts[0 … buckets] of the sizes, and cursors, which are the same. Groups of 2^coarse_bits buckets are coarse buckets,
// whose cursors and tiles of `tile` elements follow.
template <int THREADS>
__device__ void start_buckets(const uint32* sizes, uint32 buckets, uint32 coarse_bits, uint32 tile, uint32* starts, uint32* cursors,
                              uint32* coarse_cursors, uint32* tile_starts) {
    __shared__ uint32 sums[THREADS];
    const auto scan = [&](uint32 mine) {  // of the threads before
        sums[threadIdx.x] = mine;
        __syncthreads();
        for (uint32 distance = 1; distance < THREADS; distance *= 2) {
            const uint32 before = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
            __syncthreads();
            sums[threadIdx.x] += before;
            __syncthreads();
        }
        const uint32 before = sums[threadIdx.x] - mine;
        __syncthreads();
        return before;
    };
    const uint32 each = (buckets + THREADS - 1) / THREADS;
    const uint32 first = threadIdx.x * each, last = first + each < buckets ? first + each : buckets;
    uint32 mine = 0;
    for (uint32 at = first; at < last; ++at) mine += sizes[at];
    uint32 start = scan(mine);
    for (uint32 at = first; at < last; ++at) {
        starts[at] = cursors[at] = start;
        start += sizes[at];
        if (at + 1 == buckets) starts[buckets] = start;
    }
    __syncthreads();
    const uint32 coarse = (buckets - 1 >> coarse_bits) + 1;  // at most THREADS
    uint32 tiles = 0;
    if (threadIdx.x < coarse) {
        const uint32 from = threadIdx.x << coarse_bits, to = from + (1u << coarse_bits);
        coarse_cursors[threadIdx.x] = starts[from];
        tiles = (starts[to < buckets ? to : buckets] - starts[from] + tile - 1) / tile;
    }
    const uint32 before = scan(tiles);
    if (threadIdx.x < coarse) tile_starts[threadIdx.x] = before;
    if (threadIdx.x + 1 == coarse) tile_starts[coarse] = before + tiles;
}

constexpr int MOST_BUCKETS = 256;  // of one pass

// Where the tiles of a pass lie: all elements side by side, or, with tile_starts, those of `coarse` buckets of 2^coarse_bits buckets.
struct Tiles {
    uint64 count;
    const uint32 *tile_starts, *starts;
    uint32 coarse, coarse_bits, buckets;

    // False if there is no such tile; `bucket` is its coarse bucket.
    __device__ bool find(uint32 number, uint32 tile, uint64& begin, uint64& end, uint32& bucket) const {
        bucket = 0;
        if (!tile_starts) {
            begin = uint64(number) * tile;
            end = begin + tile < count ? begin + tile : count;
            return true;
        }
        if (number >= tile_starts[coarse]) return false;
        uint32 above = coarse;
        while (above - bucket > 1) {
            const uint32 middle = bucket + above >> 1;
            (tile_starts[middle] <= number ? bucket : above) = middle;
        }
        begin = starts[bucket << coarse_bits] + uint64(number - tile_starts[bucket]) * tile;
        const uint32 next = bucket + 1 << coarse_bits;
        const uint64 stop = starts[next < buckets ? next : buckets];
        end = begin + tile < stop ? begin + tile : stop;
        return true;
    }
};

// Puts a tile of elements into the buckets (code >> bits) & mask, whose cursors say where the next elements of each go.
template <class K, class V, int THREADS, int N>
__device__ void put_into_buckets(const K* keys, const V* values, const Tiles& tiles, const Codes<K>& codes, uint32 bits, uint32 mask,
                                 uint32* cursors, uint32* codes_out, V* values_out, char* memory) {
    constexpr uint32 TILE = THREADS * N;
    V* const staged = reinterpret_cast<V*>(memory);
    uint32* const staged_codes = reinterpret_cast<uint32*>(staged + TILE);
    uint32 *const counts = staged_codes + TILE, *const firsts = counts + MOST_BUCKETS, *const bases = firsts + MOST_BUCKETS;
    uint64 begin, end;
    uint32 coarse;
    if (!tiles.find(blockIdx.x, TILE, begin, end, coarse)) return;
    for (uint32 at = threadIdx.x; at < MOST_BUCKETS; at += THREADS) counts[at] = 0;
    uint32 code[N], rank[N];
    V x[N];
    bool there[N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const uint64 at = begin + n * THREADS + threadIdx.x;
        there[n] = at < end && codes.of(keys[at], code[n]);
        if (at < end) x[n] = values[at];
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < N; ++n)
        if (there[n]) rank[n] = atomicAdd(counts + (code[n] >> bits & mask), 1u);
    __syncthreads();
    if (threadIdx.x < 32) {  // one warp makes firsts of counts
        constexpr int EACH = MOST_BUCKETS / 32;
        uint32 mine[EACH], sum = 0;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            mine[k] = sum;
            sum += counts[threadIdx.x * EACH + k];
        }
        uint32 before = sum;
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            const uint32 theirs = __shfl_up_sync(~0u, before, distance);
            if (threadIdx.x >= distance) before += theirs;
        }
        before -= sum;
#pragma unroll
        for (int k = 0; k < EACH; ++k) firsts[threadIdx.x * EACH + k] = before + mine[k];
    }
    __syncthreads();
    for (uint32 at = threadIdx.x; at < MOST_BUCKETS; at += THREADS)
        if (counts[at]) bases[at] = atomicAdd(cursors + (coarse << tiles.coarse_bits) + at, counts[at]) - firsts[at];
#pragma unroll
    for (int n = 0; n < N; ++n) {
        if (!there[n]) continue;
        const uint32 at = firsts[code[n] >> bits & mask] + rank[n];
        staged_codes[at] = code[n];
        staged[at] = x[n];
    }
    __syncthreads();
    const uint32 total = firsts[MOST_BUCKETS - 1] + counts[MOST_BUCKETS - 1];
#pragma unroll 4
    for (uint32 at = threadIdx.x; at < total; at += THREADS) {
        const uint32 mine = staged_codes[at], to = bases[mine >> bits & mask] + at;
        codes_out[to] = mine;
        values_out[to] = staged[at];
    }
}
