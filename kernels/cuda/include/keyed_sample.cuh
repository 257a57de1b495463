// What a sample of the rows says: how far the keys reach, whether they are sorted, and which exponents the elements have. A guess that
// is wrong costs time, and no bits.
#pragma once
#include "exact_format.cuh"

enum Sampled { LEAST_KEY, MOST_KEY, DESCENTS, TOP_PLACE, PLACES };
constexpr int PLACE_BINS = 272;  // of 8 binary places each

// Of `samples` rows `stride` apart and of the last one: the least key, all its bits turned over, and the most, each with the highest bit of a signed key turned, at
// how many of them keys fall, and the highest place of any element in units of 2^-1074, plus 1; found[PLACES + b] is how many elements
// have their lowest bit in places 8 · b … 8 · b + 7. A block of at most 1024 threads counts in shared memory first: elements have few
// different places, and memory takes additions to one word one after another.
template <class K, class V>
__device__ void sample_rows(const K* keys, const V* values, uint64 count, uint64 stride, uint32 samples, uint64* found) {
    constexpr uint64 TURNED = Wide<K>(-1) < Wide<K>(0) ? 1ull << 63 : 0;
    __shared__ uint32 bins[PLACE_BINS];
    __shared__ uint64 of_warps[PLACES][32];
    for (uint32 bin = threadIdx.x; bin < PLACE_BINS; bin += blockDim.x) bins[bin] = 0;
    __syncthreads();
    const uint32 lane = threadIdx.x % 32, number = blockIdx.x * blockDim.x + threadIdx.x;
    uint64 least = ~0ull, most = 0, top = 0, descents = 0;
    if (number <= samples) {
        const uint64 at = number == samples ? count - 1 : number * stride;
        const uint64 key = uint64(int64(widen(keys[at]))) ^ TURNED;
        least = most = key;
#pragma unroll
        for (int away = 0; away < 2; ++away) {
            const uint64 next = at + (away ? stride : 1);
            if (next < count) descents += (uint64(int64(widen(keys[next]))) ^ TURNED) < key;
        }
        if constexpr (is_real<V>) {
            const uint64 bits = __double_as_longlong(widen(values[at])) & 0x7fffffffffffffffull;
            const int field = int(bits >> 52);
            if (bits && field < 0x7ff) {
                const uint64 fraction = bits & 0xfffffffffffffull;
                const uint64 whole = field ? fraction | 1ull << 52 : fraction;
                const int place = (field ? field : 1) - 1, low = 63 - __clzll(int64(whole & -whole));
                top = place + 64 - __clzll(int64(whole));
                atomicAdd(bins + (place + low) / 8, 1u);
            }
        }
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const uint64 less = __shfl_xor_sync(~0u, least, distance), more = __shfl_xor_sync(~0u, most, distance);
        const uint64 higher = __shfl_xor_sync(~0u, top, distance);
        least = less < least ? less : least;
        most = more > most ? more : most;
        top = higher > top ? higher : top;
        descents += __shfl_xor_sync(~0u, descents, distance);
    }
    if (lane == 0) {
        const uint32 warp = threadIdx.x / 32;
        of_warps[LEAST_KEY][warp] = least;
        of_warps[MOST_KEY][warp] = most;
        of_warps[DESCENTS][warp] = descents;
        of_warps[TOP_PLACE][warp] = top;
    }
    __syncthreads();
    for (uint32 bin = threadIdx.x; bin < PLACE_BINS; bin += blockDim.x)
        if (bins[bin]) atomicAdd(found + PLACES + bin, uint64(bins[bin]));
    if (threadIdx.x) return;
    for (uint32 warp = 1; warp < blockDim.x / 32; ++warp) {
        least = of_warps[LEAST_KEY][warp] < least ? of_warps[LEAST_KEY][warp] : least;
        most = of_warps[MOST_KEY][warp] > most ? of_warps[MOST_KEY][warp] : most;
        top = of_warps[TOP_PLACE][warp] > top ? of_warps[TOP_PLACE][warp] : top;
        descents += of_warps[DESCENTS][warp];
    }
    atomicMax(found + LEAST_KEY, ~least);
    atomicMax(found + MOST_KEY, most);
    atomicMax(found + TOP_PLACE, top);
    if (descents) atomicAdd(found + DESCENTS, descents);
}
