// Sums of windows of one line in one pass: what enters a window less what leaves it is added up from the first element on. Blocks take tiles
// in their order, say the sum of theirs, and look back at those of the tiles before until one knows the sum of all before (Merrill and Garland,
// "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016).
#pragma once
#include "windows.cuh"

// What the tiles have said: `said[0]` is how many are taken, and said[1 + tile] is OWN or ALL once sums[2 · tile], the sum of the tile, or
// sums[2 · tile + 1], that of all up to its end, is known.
struct TileSums {
    enum : uint32 { OWN = 1, ALL = 2 };
    uint32* said;
    uint128* sums;

    __device__ void say(uint64 tile, uint32 which, uint128 sum) const {
        sums[2 * tile + which - OWN] = sum;
        __threadfence();
        *(volatile uint32*)(said + 1 + tile) = which;
    }

    // The sum of all tiles before; `own` is that of this one. All lanes of a warp call this.
    __device__ uint128 before(uint64 tile, uint128 own) const {
        const uint32 lane = threadIdx.x % 32;
        if (lane == 0) say(tile, tile ? OWN : ALL, own);
        uint128 all = 0;
        for (int64 at = int64(tile) - 1 - lane; tile; at -= 32) {
            uint32 word = ALL, ready, whole, needed;  // before the first tile all is known to be 0
            do {
                if (at >= 0) word = *(volatile uint32*)(said + 1 + at);
                ready = __ballot_sync(~0u, word != 0);
                whole = __ballot_sync(~0u, word == ALL);
                needed = whole ? (whole & -whole) * 2 - 1 : ~0u;  // up to the nearest that knows all
            } while ((ready & needed) != needed);
            __threadfence();
            uint128 sum = 0;
            if (at >= 0 && needed >> lane & 1) {
                const uint4 words = __ldcg(reinterpret_cast<const uint4*>(sums + 2 * at + word - OWN));
                sum = uint128(uint64(words.w) << 32 | words.z) << 64 | (uint64(words.y) << 32 | words.x);
            }
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) sum += shuffle_xor(sum, distance);
            all += sum;
            if (whole) break;
        }
        if (lane == 0 && tile) say(tile, ALL, all + own);
        return all;
    }

    static __device__ uint128 shuffle_xor(uint128 x, int distance) {
        return uint128(__shfl_xor_sync(~0u, uint64(x >> 64), distance)) << 64 | __shfl_xor_sync(~0u, uint64(x), distance);
    }
};

// The elements of a thread: more than elsewhere, for a look back takes as long as adding up a tile does; with 16 registers spill. An even number
// keeps the elements of neighbouring threads in different banks.
constexpr int SCANNED = 14;

// Adds the elements first … first + SCANNED · blockDim.x − 1 of an array, of which those that it has not are 0, to the terms of the threads, or
// takes them away. They come by `held`, so that neighbouring threads read neighbouring ones.
template <bool LEAVES, class T>
__device__ void add_tile(const T* data, int64 first, int64 count, const FixedPoint& term, T* held, uint128 (&terms)[SCANNED]) {
    __syncthreads();  // what was there is read
#pragma unroll
    for (int k = 0; k < SCANNED; ++k) {
        const int place = k * blockDim.x + threadIdx.x;
        const int64 at = first + place;
        T element{};
        if (at >= 0 && at < count) element = data[at];
        held[place + place / SCANNED] = element;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SCANNED; ++k) {
        const uint128 each = term.of(held[threadIdx.x * (SCANNED + 1) + k]);
        terms[k] = LEAVES ? terms[k] - each : terms[k] + each;
    }
}

// The sum of the window of each element or, where it `divides`, the mean, rounded once to an R, of an array without special elements and
// without −0. The window of element i has the last `rows` of those up to i + ahead, or all of them where `rows` is 0.
template <class T, class R, int THREADS>
__device__ void scanned_windows_of(const T* data, uint64 count, const FixedPoint& term, uint64 rows, uint64 ahead, uint32 divides, const TileSums& tiles,
                                   double* values) {
    constexpr int TILE = THREADS * SCANNED;
    __shared__ uint128 shared[THREADS / 32], before;
    __shared__ uint32 taken;
    __shared__ double turned[THREADS * (SCANNED + 1)];
    static_assert(sizeof(T) <= sizeof(double), "elements lie where values lie later");
    if (threadIdx.x == 0) taken = atomicAdd(tiles.said, 1);
    __syncthreads();
    const int64 first = int64(taken) * TILE;
    T* const held = reinterpret_cast<T*>(turned);
    uint128 terms[SCANNED] = {}, sum = 0, own;
    add_tile<false>(data, first, int64(count), term, held, terms);
    if (rows && first + TILE > int64(rows)) add_tile<true>(data, first - int64(rows), int64(count), term, held, terms);
#pragma unroll
    for (int k = 0; k < SCANNED; ++k) sum += terms[k];
    uint128 up_to = sum_before(sum, shared, own);
    if (threadIdx.x < 32) {
        const uint128 all = tiles.before(taken, own);
        if (threadIdx.x == 0) before = all;
    }
    __syncthreads();
    up_to += before;
    const uint64 mine = uint64(first) + threadIdx.x * SCANNED;
#pragma unroll
    for (int k = 0; k < SCANNED; ++k) {
        up_to += terms[k];
        uint64 divisor = 1;
        if (divides) {
            const uint64 end = mine + k + 1, begin = rows && end > rows ? end - rows : 0, stop = end < count ? end : count;
            if (stop > begin) divisor = stop - begin;  // else there is no such window
        }
        turned[threadIdx.x * (SCANNED + 1) + k] = rounded_total<R>(up_to, divisor, term.lowest);
    }
    __syncthreads();
    for (uint32 k = threadIdx.x; k < TILE; k += THREADS) {
        const uint64 at = uint64(first) + k;
        if (at >= ahead && at - ahead < count) values[at - ahead] = turned[k + k / SCANNED];
    }
}
