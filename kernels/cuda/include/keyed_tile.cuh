// A tile of neighbouring rows with sorted keys: its rows in the registers of a block's threads, and its heads in shared memory. The first row
// of a group is a head.
#pragma once
#include "exact_format.cuh"

// Neighbouring elements that may stay in the multiprocessor's cache, because the next read has the other half of their lines.
template <class T>
__device__ void read_four(const T* at, T* out) {
#pragma unroll
    for (int k = 0; k < int(sizeof(T)) / 4; ++k) {
        const uint4 v = __ldg(reinterpret_cast<const uint4*>(at) + k);
        memcpy(out + 16 / sizeof(T) * k, &v, 16);
    }
}

// The rows of a thread, `here` of which there are. The others have the key of the last one and the element 0.
template <class K, class V, int READS>
struct RowsOfThread {
    static constexpr int EACH = 4 * READS;
    static_assert(EACH <= 16);
    K key[EACH];
    V x[EACH];
    uint32 heads;  // a bit a row
    bool unsorted;

    static __device__ int here(uint32 first, uint32 valid) { return first >= valid ? 0 : valid - first < EACH ? int(valid - first) : EACH; }

    // The rows from `first` on of a tile that starts at `start` and has `valid` rows. Keys and elements lie at multiples of 16 bytes.
    __device__ void read(const K* keys, const V* values, uint64 start, uint32 first, uint32 valid) {
        if (here(first, valid) == EACH) {
#pragma unroll
            for (int r = 0; r < READS; ++r) read_four(keys + start + first + 4 * r, key + 4 * r);
#pragma unroll
            for (int r = 0; r < READS; ++r) read_four(values + start + first + 4 * r, x + 4 * r);
        } else {
#pragma unroll
            for (int n = 0; n < EACH; ++n) {
                key[n] = n < here(first, valid) ? keys[start + first + n] : n ? key[n ? n - 1 : 0] : K(0);
                x[n] = n < here(first, valid) ? values[start + first + n] : V(0);
            }
        }
    }
    // Finds the heads of the same rows; `turned` is the highest bit of a signed key. All lanes of a warp call this.
    __device__ void find_heads(const K* keys, uint64 start, uint32 first, uint32 valid, K turned) {
        const int lane = threadIdx.x % 32;
        K prior = 0;
        if (lane == 0 && first < valid && start + first) prior = keys[start + first - 1] ^ turned;
        const K theirs = __shfl_up_sync(~0u, key[EACH - 1], 1);
        if (lane) prior = theirs ^ turned;
        if (start + first == 0) prior = key[0] ^ turned;
        heads = start + first == 0;
        unsorted = false;
        if (first >= valid) return;
#pragma unroll
        for (int n = 0; n < EACH; ++n) {
            const K mine = key[n] ^ turned, last = n ? K(key[n ? n - 1 : 0] ^ turned) : prior;
            heads |= uint32(mine != last) << n;
            unsorted |= mine < last;
        }
    }
    // The bits of the heads up to row n.
    __device__ uint32 heads_to(int n) const { return heads & ((2u << n) - 1); }
};

// What all threads of a block know of its tile.
template <int READS, int THREADS>
struct HeadsOfTile {
    static constexpr int EACH = 4 * READS, SIZE = THREADS * EACH, WARPS = THREADS / 32;
    uint64 before;  // how many groups begin before the tile
    uint32 heads[WARPS];
    uint32 bad[SIZE / 32], any_bad, lead_bad;  // where elements are that the units do not hold; before the first head they are the lead's
    uint16 places[SIZE];  // of each head

    __device__ void clear() {
        for (uint32 at = threadIdx.x; at < SIZE / 32; at += THREADS) bad[at] = 0;
        if (threadIdx.x == 0) any_bad = lead_bad = 0;
    }
    // How many heads come before a thread that has `mine`, and how many there are in `all`. All threads call this.
    __device__ uint32 ranked(uint32 mine, uint32& all) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        uint32 rank = mine;
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            const uint32 other = __shfl_up_sync(~0u, rank, distance);
            if (lane >= distance) rank += other;
        }
        if (lane == 31) heads[warp] = rank;
        __syncthreads();
        rank -= mine;
        all = 0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            const uint32 some = heads[w];
            if (w < warp) rank += some;
            all += some;
        }
        return rank;
    }
    // Notes an element that the units do not hold, behind so many heads.
    __device__ void note_bad(uint32 heads_before) {
        any_bad = 1;
        if (heads_before)
            atomicOr(bad + (heads_before - 1) / 32, 1u << (heads_before - 1) % 32);
        else
            lead_bad = 1;
    }
    __device__ bool is_bad(uint32 head) const { return bad[head / 32] >> head % 32 & 1; }
};
