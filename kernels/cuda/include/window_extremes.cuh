// Where windows lie that move along an array, and the least element of each.
#pragma once
#include "sorting_keys.cuh"

// The window of the element at each place: where it begins and ends. Without arrays of both, lines have `length` elements, and a window the
// last `rows` of those up to `ahead` behind the element, or all from the line's first one on where `rows` is 0.
struct Windows {
    const int64 *begins, *ends;
    uint64 length, rows, ahead;

    __device__ void of(uint64 at, uint64& begin, uint64& end) const {
        if (begins) {
            begin = uint64(begins[at]);
            end = uint64(ends[at]);
            return;
        }
        const uint64 start = at / length * length, stop = start + length;
        end = at + 1 + ahead;
        begin = rows && end > start + rows ? end - rows : start;
        if (end > stop) end = stop;
    }
};

// Keys by which the least is looked for: those of sorting_keys.cuh, of magnitudes where these are asked for, turned over for the largest
// element, and moved by `shift`, which puts NaN first, or last where NaNs are left out.
struct LeastOrder {
    uint32 descending, magnitudes;
    int shift;

    template <class T>
    __device__ SortingKey<T> key(T x) const {
        using Key = SortingKey<T>;
        constexpr Key sign = Key(Key(1) << (8 * sizeof(T) - 1));
        Key key = sorting_key(x);
        if (magnitudes) {
            if constexpr (is_real<T>) {
                if (key < sign) key = Key(~key);  // of a negative number
            } else if constexpr (T(-1) < T(0)) {
                key = Key(magnitude(widen(x)));
            }
        }
        return Key(Key(descending ? Key(~key) : key) + Key(shift));
    }
    // What a key stands for, as a word: a double's bits, or an integer of 64 bits.
    template <class T>
    __device__ uint64 word(SortingKey<T> moved) const {
        using Key = SortingKey<T>;
        constexpr Key sign = Key(Key(1) << (8 * sizeof(T) - 1));
        Key key = Key(moved - Key(shift));
        if (descending) key = Key(~key);
        if constexpr (is_real<T>) {
            const Key bits = key & sign ? Key(key ^ sign) : Key(~key);
            T x;
            memcpy(&x, &bits, sizeof(T));
            return uint64(__double_as_longlong(double(widen(x))));
        } else if constexpr (T(-1) < T(0)) {
            if (magnitudes) return key;
            const Key bits = Key(key ^ sign);
            T x;
            memcpy(&x, &bits, sizeof(T));
            return uint64(int64(x));
        } else {
            return key;
        }
    }
};
template <>
__device__ inline uint64 LeastOrder::word<boolean>(uint8 moved) const {
    return descending ? uint8(~moved) : moved;
}
template <>
__device__ inline uint8 LeastOrder::key(boolean x) const {
    const uint8 key = x.byte != 0;
    return descending ? uint8(~key) : key;
}

// The least keys of a block of 32 neighbouring elements: from its first one up to each, and from each up to its last one.
template <class T>
__device__ void extremes_of_blocks_of(const T* data, uint64 count, const LeastOrder& order, SortingKey<T>* up_to, SortingKey<T>* from,
                                      SortingKey<T>* least) {
    using Key = SortingKey<T>;
    const uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % 32;
    Key left = at < count ? order.key(data[at]) : Key(~Key(0)), right = left;
    for (int distance = 1; distance < 32; distance *= 2) {
        const Key before = __shfl_up_sync(~0u, left, distance), behind = __shfl_down_sync(~0u, right, distance);
        if (lane >= distance && before < left) left = before;
        if (lane + distance < 32 && behind < right) right = behind;
    }
    if (at >= count) return;
    up_to[at] = left;
    from[at] = right;
    if (lane == 0) least[at / 32] = right;
}

// The least keys of runs of 2 · half blocks from each on, of those of runs of half as many. Runs end with the array.
template <class Key>
__device__ void double_runs_of(const Key* keys, uint64 count, uint64 half, Key* doubled) {
    const uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const Key mine = keys[at], next = keys[at + half < count ? at + half : count - 1];
    doubled[at] = next < mine ? next : mine;
}

// The least of each window: of the ends of two blocks, and of two overlapping runs of the blocks between them, whose keys are in a row of
// `runs` for each power of two. A window within a block is read. One without elements has an arbitrary value.
template <class T>
__device__ void extremes_of_windows_of(const T* data, uint64 count, const LeastOrder& order, const SortingKey<T>* up_to, const SortingKey<T>* from,
                                       const SortingKey<T>* runs, const Windows& windows, uint64* values) {
    using Key = SortingKey<T>;
    const uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x, blocks = (count + 31) / 32;
    if (at >= count) return;
    uint64 begin, end;
    windows.of(at, begin, end);
    if (begin >= end) return;
    const uint64 first = begin / 32, last = (end - 1) / 32;
    Key least = ~Key(0);
    const auto take = [&](Key key) { least = key < least ? key : least; };
    if (first == last) {
        for (uint64 each = begin; each < end; ++each) take(order.key(data[each]));
    } else {
        take(from[begin]);
        take(up_to[end - 1]);
        if (last - first > 1) {
            const int level = 63 - __clzll(int64(last - first - 1));
            const Key* const row = runs + level * blocks;
            take(row[first + 1]);
            take(row[last - (uint64(1) << level)]);
        }
    }
    values[at] = order.word<T>(least);
}
