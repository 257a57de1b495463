// Elements of given ranks of each of many rows: neighbouring elements, those of row r from bounds(r) on. A row's ranks are
// ranks[which[r]][0 … wanted − 1], in rising order.
#pragma once
#include "exact_members.cuh"
#include "sorting_keys.cuh"

struct RanksOfRows {
    const int64 *ranks, *which;
    int wanted;

    __device__ const int64* of(uint64 row) const { return ranks + which[row] * wanted; }
};

// A warp finds the place of every element of a row of up to 64 among the others: those that are less, and equal ones before it.
template <class T>
__device__ void select_in_short_row(const T* data, uint32 count, const int64* ranks, int wanted, SortingKey<T>* found) {
    using Key = SortingKey<T>;
    const uint32 lane = threadIdx.x % 32;
    const Key low = lane < count ? sorting_key(data[lane]) : Key(0), high = lane + 32 < count ? sorting_key(data[lane + 32]) : Key(0);
    uint32 low_place = 0, high_place = 0;
    for (uint32 k = 0; k < count; ++k) {
        const Key other = Key(__shfl_sync(~0u, k < 32 ? low : high, k % 32));
        low_place += other < low || (other == low && k < lane);
        high_place += other < high || (other == high && k < lane + 32);
    }
    for (int k = 0; k < wanted; ++k) {
        if (lane < count && low_place == uint32(ranks[k])) found[k] = low;
        if (lane + 32 < count && high_place == uint32(ranks[k])) found[k] = high;
    }
}

constexpr int ROW_THREADS = 256, ROW_COPIES = 8;

// The counters of a block for one digit of eight bits, in copies so that lanes seldom meet.
struct DigitCounters {
    uint32 counts[256 * ROW_COPIES];
    uint64 up_to[256];  // how many elements have this digit or a lower one
};

// A block goes down the digits of keys to that of a rank, which is lowered by the elements before. `less` gets how many elements of the
// row are less than the key or equal to it. All threads must take part.
template <class T>
__device__ SortingKey<T> key_of_rank(const T* data, uint64 count, uint64 rank, DigitCounters& shared, uint64& less) {
    using Key = SortingKey<T>;
    constexpr int WIDTH = 8 * sizeof(T);
    uint64 prefix = 0, before = 0;
    for (int shift = WIDTH - 8; shift >= 0; shift -= 8) {
        for (int k = threadIdx.x; k < 256 * ROW_COPIES; k += ROW_THREADS) shared.counts[k] = 0;
        __syncthreads();
        for (uint64 at = threadIdx.x; at < count; at += ROW_THREADS) {
            const uint64 key = sorting_key(data[at]);
            if (shift + 8 == WIDTH || key >> (shift + 8) == prefix)
                atomicAdd(shared.counts + ((key >> shift & 255) * ROW_COPIES + threadIdx.x % ROW_COPIES), 1u);
        }
        __syncthreads();
        uint64 sum = 0;
        for (int k = 0; k < ROW_COPIES; ++k) sum += shared.counts[threadIdx.x * ROW_COPIES + k];
        shared.up_to[threadIdx.x] = sum;
        __syncthreads();
        for (int distance = 1; distance < 256; distance *= 2) {
            const uint64 left = threadIdx.x >= distance ? shared.up_to[threadIdx.x - distance] : 0;
            __syncthreads();
            shared.up_to[threadIdx.x] += left;
            __syncthreads();
        }
        int digit = 0;  // every thread looks for it, and all find the same
        for (int step = 128; step > 0; step /= 2)
            if (shared.up_to[digit + step - 1] <= rank - before) digit += step;
        prefix = prefix << 8 | uint32(digit);
        less = before + shared.up_to[digit];
        if (digit > 0) before += shared.up_to[digit - 1];
        __syncthreads();
    }
    return Key(prefix);
}

// The least key above another one, and how many elements have it.
template <class Key>
struct Above {
    Key key;
    uint32 times;

    __device__ void add(Key other, uint32 others) {
        if (other > key) return;
        times = other < key ? others : times + others;
        key = other;
    }
};

// All threads must take part.
template <class T>
__device__ Above<SortingKey<T>> key_above(const T* data, uint64 count, SortingKey<T> below) {
    using Key = SortingKey<T>;
    __shared__ Above<Key> each[ROW_THREADS / 32];
    Above<Key> best{Key(~Key(0)), 0};
    for (uint64 at = threadIdx.x; at < count; at += ROW_THREADS) {
        const Key key = sorting_key(data[at]);
        if (key > below) best.add(key, 1);
    }
    for (int distance = 16; distance > 0; distance /= 2)
        best.add(Key(__shfl_down_sync(~0u, best.key, distance)), __shfl_down_sync(~0u, best.times, distance));
    if (threadIdx.x % 32 == 0) each[threadIdx.x / 32] = best;
    __syncthreads();
    best = each[0];
    for (int k = 1; k < ROW_THREADS / 32; ++k) best.add(each[k].key, each[k].times);
    __syncthreads();
    return best;
}

// A block finds the elements of a row, however long. Neighbouring ranks take one more read.
template <class T>
__device__ void select_in_row(const T* data, uint64 count, const int64* ranks, int wanted, SortingKey<T>* found) {
    using Key = SortingKey<T>;
    __shared__ DigitCounters shared;
    Key key = 0;
    uint64 less = 0;  // elements that are less than `key` or equal to it
    for (int k = 0; k < wanted; ++k) {
        const uint64 rank = uint64(ranks[k]);
        if (k > 0 && rank == less) {
            const Above<Key> next = key_above(data, count, key);
            key = next.key;
            less += next.times;
        } else if (k == 0 || rank > less) {
            key = key_of_rank(data, count, rank, shared, less);
        }
        if (threadIdx.x == 0) found[k] = key;
    }
}
