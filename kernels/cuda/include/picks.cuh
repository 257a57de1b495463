// The first elements of rows, in their order or by their places, and how many elements of rows lie in bins. A row is a run of neighbouring
// elements: all of a value, or a part of them. A value of many elements is cut into rows, so that `step` is 0: they share what a value has.
#pragma once
#include "sorting_keys.cuh"
#include "vector.cuh"

// Where rows lie: between two offsets, or `length` elements each, of which the last has what is left of `total`.
struct PickRows {
    const int64* offsets;
    uint64 length, total, count, longest;  // rows of more than `longest` elements are left to other launches

    __device__ bool bounds(uint64 row, uint64& begin, uint64& size) const {
        begin = offsets ? uint64(offsets[row]) : row * length;
        size = offsets ? uint64(offsets[row + 1]) - begin : total - begin < length ? total - begin : length;
        return size <= longest;
    }
};

// How elements are told from each other. Keys are those of sorting_keys.cuh moved by `shift`, which puts NaN where it belongs, and before
// that turned over where the largest comes first. `zeros` makes −0 and 0 one. By place all elements are equal but NaNs, which are left out.
enum : uint32 { DESCENDING = 1, ZEROS = 2, BY_PLACE = 4 };
struct Order {
    uint32 how;
    int shift;

    template <class T>
    __device__ SortingKey<T> key(T x) const {
        using Key = SortingKey<T>;
        Key key = sorting_key(x);
        if constexpr (is_real<T>) {
            constexpr Key zero = Key(Key(1) << (8 * sizeof(T) - 1));  // of +0, and −0 has the one before
            if ((how & ZEROS) && key == Key(zero - 1)) key = zero;
        }
        return Key(Key(how & DESCENDING ? Key(~key) : key) + Key(shift));
    }
    // 0 for an element that comes before those with the key `bound`, 1 for one that has it, 2 for all others.
    template <class T>
    __device__ uint32 side(T x, SortingKey<T> bound) const {
        if (how & BY_PLACE) return is_real<T> && sorting_key(x) == SortingKey<T>(~SortingKey<T>(0)) ? 2 : 1;
        const SortingKey<T> mine = key(x);
        return mine < bound ? 0 : mine == bound ? 1 : 2;
    }
};

// A warp counts the elements of its row on the sides 0 and 1.
template <class T>
__device__ void count_picks_of(const T* data, const PickRows& rows, const SortingKey<T>* bounds, uint64 step, const Order& order, uint32* counts) {
    constexpr int FLIGHT = 8;
    const uint64 row = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    const uint32 lane = threadIdx.x % 32;
    uint64 begin, size;
    if (row >= rows.count || !rows.bounds(row, begin, size)) return;
    const SortingKey<T> bound = bounds[row * step];
    uint32 before = 0, equal = 0;
    for (uint64 at = lane; at < size; at += 32 * FLIGHT) {
        T read[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k)
            if (at + k * 32 < size) read[k] = data[begin + at + k * 32];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k)
            if (at + k * 32 < size) {
                const uint32 side = order.side(read[k], bound);
                before += side == 0;
                equal += side == 1;
            }
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        before += __shfl_down_sync(~0u, before, distance);
        equal += __shfl_down_sync(~0u, equal, distance);
    }
    if (lane == 0) {
        counts[2 * row] = before;
        counts[2 * row + 1] = equal;
    }
}

// Slots of the elements of a row that are picked. Those before the bound go to `before` and behind. Those that have its key go to `equal`
// and behind, if their slot is from `least` on and before `most`. The place of a row's first element in its value is `first`.
struct PickSlots {
    int64 before, equal, least, most, first;
};

// A warp writes the elements of its row that are picked, and their places, in their order.
template <class T>
__device__ void write_picks_of(const T* data, const PickRows& rows, const SortingKey<T>* bounds, uint64 step, const Order& order,
                               const uint32* counts, const PickSlots* slots, SortingKey<T>* elements, int64* places) {
    const uint64 row = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    const uint32 lane = threadIdx.x % 32;
    uint64 begin, size;
    if (row >= rows.count || !rows.bounds(row, begin, size)) return;
    PickSlots to = slots[row];
    uint32 before = counts[2 * row], equal = counts[2 * row + 1];  // those that are still to come
    const SortingKey<T> bound = bounds[row * step];
    for (uint64 at = 0; at < size; at += 32) {
        const bool left = equal && to.equal < to.most && to.equal + int64(equal) > to.least;
        if (!before && !left) return;
        uint32 side = 2;
        T x{};
        if (at + lane < size) {
            x = data[begin + at + lane];
            side = order.side(x, bound);
        }
        const uint32 come_before = __ballot_sync(~0u, side == 0), are_equal = __ballot_sync(~0u, side == 1), mine = 1u << lane;
        const uint32 earlier = __popc((side == 0 ? come_before : are_equal) & (mine - 1));
        const int64 slot = (side == 0 ? to.before : to.equal) + int64(earlier);
        if (side == 0 || (side == 1 && slot >= to.least && slot < to.most)) {
            SortingKey<T> bits;
            memcpy(&bits, &x, sizeof(T));
            elements[slot] = bits;
            places[slot] = to.first + int64(at + lane);
        }
        to.before += __popc(come_before);
        to.equal += __popc(are_equal);
        before -= __popc(come_before);
        equal -= __popc(are_equal);
    }
}

// Bins between rising keys: bin b has the keys from edges[b] on and below edges[b + 1], and none above `last`. Keys from the first one on
// are cut into cells of 2^shift; starts[cell] is the bin of the first key of a cell.
constexpr int MOST_EDGES = 1001, MOST_CELLS = 2048, NO_BIN = -1;
struct Bins {
    const uint64* edges;
    const uint16* starts;
    int count, known;  // of bins, and of edges that some key has
    uint32 shift;
    uint64 last;

    template <class Key>
    __device__ int of(Key key) const {
        if (key < edges[0] || key > last) return NO_BIN;
        const uint32 cell = uint32((uint64(key) - edges[0]) >> shift);
        int low = starts[cell], high = starts[cell + 1];
        while (low < high) {
            const int middle = (low + high + 1) / 2;
            if (edges[middle] <= key) low = middle;
            else high = middle - 1;
        }
        return low < count ? low : count - 1;
    }
};

constexpr int COUNTERS = 4096, LOADS = 4;

// What a block has in shared memory: edges and starts of its own, and 2^spread counters of each bin, so that lanes of a warp seldom meet.
struct BinCounters {
    uint64 edges[MOST_EDGES];
    uint16 starts[MOST_CELLS + 2];
    uint32 counters[COUNTERS];
};

// A block counts one row after another. `step` is 0, or 1 where each row is a value with counters of its own. All threads must take part.
template <class T>
__device__ void count_bins_of(const T* data, const PickRows& all, const Bins& bins, int cells, uint32 spread, uint64 step, BinCounters& shared,
                              uint64* counts) {
    for (int k = threadIdx.x; k < bins.known; k += blockDim.x) shared.edges[k] = bins.edges[k];
    for (int k = threadIdx.x; k <= cells; k += blockDim.x) shared.starts[k] = bins.starts[k];
    for (int k = threadIdx.x; k < bins.count << spread; k += blockDim.x) shared.counters[k] = 0;
    __syncthreads();
    const Bins of{shared.edges, shared.starts, bins.count, bins.known, bins.shift, bins.last};
    const uint32 copy = threadIdx.x & ((1u << spread) - 1u);
    const auto take = [&](T x) {
        const int bin = of.of(sorting_key(x));
        if (bin != NO_BIN) atomicAdd(shared.counters + ((uint32(bin) << spread) | copy), 1u);
    };
    for (uint64 row = blockIdx.x; row < all.count; row += gridDim.x) {
        uint64 begin, size;
        if (!all.bounds(row, begin, size)) continue;  // alike for all threads
        const T* const from = data + begin;
        const uint64 skew = (16 - reinterpret_cast<uint64>(from) % 16) % 16 / sizeof(T);
        const uint64 before = skew < size ? skew : size, vectors = (size - before) / Vector<T>::size;
        for (uint64 k = threadIdx.x; k < before; k += blockDim.x) take(from[k]);
        for (uint64 k = before + vectors * Vector<T>::size + threadIdx.x; k < size; k += blockDim.x) take(from[k]);
        const T* const aligned = from + before;
        uint64 at = threadIdx.x;
        for (; at + (LOADS - 1) * blockDim.x < vectors; at += LOADS * blockDim.x) {
            Vector<T> read[LOADS];
#pragma unroll
            for (int k = 0; k < LOADS; ++k) read[k] = Vector<T>::load(aligned + (at + k * blockDim.x) * Vector<T>::size);
#pragma unroll
            for (int k = 0; k < LOADS; ++k)
#pragma unroll
                for (int lane = 0; lane < Vector<T>::size; ++lane) take(read[k][lane]);
        }
        for (; at < vectors; at += blockDim.x) {
            const Vector<T> read = Vector<T>::load(aligned + at * Vector<T>::size);
#pragma unroll
            for (int lane = 0; lane < Vector<T>::size; ++lane) take(read[lane]);
        }
        if (!step && row + gridDim.x < all.count) continue;  // the rows are parts of one value
        __syncthreads();
        for (int bin = threadIdx.x; bin < bins.count; bin += blockDim.x) {
            uint64 sum = 0;
            for (uint32 k = 0; k < 1u << spread; ++k) {
                uint32& counter = shared.counters[(uint32(bin) << spread) + ((k + uint32(bin)) & ((1u << spread) - 1u))];
                sum += counter;
                counter = 0;
            }
            if (sum) atomicAdd(counts + row * step * bins.count + bin, sum);
        }
        __syncthreads();
    }
}

// Keys in which −0 and 0 are one.
template <class T>
__device__ void keys_of_values_of(const T* data, uint64 count, SortingKey<T>* keys) {
    const uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at < count) keys[at] = Order{ZEROS, 0}.key(data[at]);
}

// Runs of equal keys, which are sorted within each value. Element i belongs to value ids[i], or all to one without ids; value v ends at
// ends[v]. Keys from `none` on, which NaNs have, are left out where `none` is not 0.
template <class Key>
struct KeyRuns {
    const Key* keys;
    const uint64* ids;
    const int64* ends;
    uint64 count, none;

    __device__ uint64 value(uint64 at) const { return ids ? ids[at] : 0; }
    __device__ bool begins(uint64 at) const {
        if (none && keys[at] >= none) return false;
        return at == 0 || keys[at] != keys[at - 1] || (ids && ids[at] != ids[at - 1]);
    }
    // How long the run is that begins there: ever longer steps while keys are equal, and ever shorter ones then.
    __device__ uint64 length(uint64 at) const {
        const uint64 end = uint64(ends[value(at)]);
        uint64 last = at, step = 1;
        for (; last + step < end && keys[last + step] == keys[at]; step *= 2) last += step;
        for (; step > 0; step /= 2)
            if (last + step < end && keys[last + step] == keys[at]) last += step;
        return last + 1 - at;
    }
};

// How many runs each value has; or of its longest ones the first: the length in the upper 32 bits, and below it the place, turned over.
template <class Key>
__device__ void take_runs_of(const KeyRuns<Key>& runs, uint32 longest, uint64* taken) {
    uint64 mine = 0;  // of all elements of one value
    for (uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x; at < runs.count; at += uint64(gridDim.x) * blockDim.x) {
        if (!runs.begins(at)) continue;
        uint64* const of_value = taken + runs.value(at);
        if (longest) {
            const uint64 run = runs.length(at) << 32 | uint64(uint32(~at));
            if (run > *of_value) atomicMax(of_value, run);  // what is read may be old, and is never too large
        } else if (runs.ids) {
            atomicAdd(of_value, 1ull);
        } else {
            ++mine;
        }
    }
    if (longest || runs.ids) return;
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_down_sync(~0u, mine, distance);
    if (threadIdx.x % 32 == 0 && mine) atomicAdd(taken, mine);
}
