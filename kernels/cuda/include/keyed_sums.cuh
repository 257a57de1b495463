// Exact sums by key. A key is a code: a number below `range`, the difference to the least key.
//
// A block adds up the elements of its part in shared memory, where each group has a count and for each level an integer of 64 bits
// as two words: the lower word wraps around, and whoever sees it wrap adds 1 to the upper one. Nothing rounds, and integers commute,
// so the order of threads does not show. At the end of its part a block adds its integers to those of the groups in memory.
//
// What the levels leave of an element goes to one more level in memory at once, which few elements need. What that does not hold is
// listed, and specials set flags of their group.
#pragma once
#include "keyed_levels.cuh"
#include "vector.cuh"

enum Note { MISSED, LISTED, NEGATIVE_ZEROS, SPECIALS, UNSORTED, NOTES };
enum Special : uint32 { SAW_NAN = 1, SAW_INFINITY = 2, SAW_NEGATIVE_INFINITY = 4 };
enum Aside { HELD, LISTED_INSTEAD, LEFT_OUT };

// Codes of keys.
template <class K>
struct Codes {
    int64 least;
    uint64 range;  // below 2^31

    // False if the key has none.
    __device__ bool of(K key, uint32& code) const {
        if constexpr (sizeof(K) == 8) {
            const uint64 away = uint64(widen(key)) - uint64(least);
            code = uint32(away);
            return away < range;
        } else {
            code = uint32(widen(key)) - uint32(least);
            return code < uint32(range);
        }
    }
};

// The groups in memory. Word (2 · level + half) · range + code of `sums` is the sum of the lower or of the upper halves of what blocks
// had; level LEVELS is that of the rests.
struct KeyedState {
    uint64* sums;
    uint32 *counts, *absent, *flags, *notes;
    uint32* listed;
    double* elements;
    uint32 most;
    uint64 range;

    __device__ void add(int level, uint64 code, int64 part) const {
        uint64* const at = sums + 2 * level * range + code;
        if (uint32(part)) atomicAdd(at, uint64(uint32(part)));
        if (part >> 32) atomicAdd(at + range, uint64(part >> 32));
    }
    __device__ void put(int level, uint64 code, int64 part) const {  // where nobody else adds
        uint64* const at = sums + 2 * level * range + code;
        at[0] = uint32(part);
        at[range] = uint64(part >> 32);
    }
    __device__ void note(int which, bool any) const {
        if (any) notes[which] = 1;
    }
    __device__ void flag(uint32 code, uint32 bit) const {
        if (flags[code] & bit) return;
        atomicOr(flags + code, bit);
        notes[SPECIALS] = 1;
    }

    // An element of which `rest` is left, or, if it is not `held`, which no level holds.
    template <class V, int LEVELS>
    __device__ Aside set_aside(const LevelsOf<V, LEVELS>& levels, uint32 code, V x, bool held, double rest, bool omit_nan) const {
        if constexpr (is_real<V>) {
            const double whole = widen(x);
            if (held) {
                const int64 part = levels.taken(rest, levels.anchors[LEVELS]);
                if (rest == 0) {
                    add(LEVELS, code, part);
                    return HELD;
                }
            } else if (is_nan(whole)) {
                if (omit_nan) {
                    atomicAdd(absent + code, 1u);
                    return LEFT_OUT;
                }
                flag(code, SAW_NAN);
                return HELD;
            } else if (fabs(whole) == __longlong_as_double(0x7ff0000000000000ll)) {
                flag(code, whole > 0 ? SAW_INFINITY : SAW_NEGATIVE_INFINITY);
                return HELD;
            }
            const uint32 place = atomicAdd(notes + LISTED, 1u);
            if (place < most) {
                listed[place] = code;
                elements[place] = whole;
            }
            return LISTED_INSTEAD;
        }
        return HELD;
    }
};

// The groups of a block, in (2 · LEVELS + 1) · slots words of shared memory: lower words, upper words, counts.
template <int LEVELS>
struct SharedSums {
    uint32 *memory, slots;

    __device__ void clear() const {
        for (uint32 at = threadIdx.x; at < (2 * LEVELS + 1) * slots; at += blockDim.x) memory[at] = 0;
    }

    // Adds N elements; a slot of ~0 is none.
    template <int N>
    __device__ void add(const uint32 (&slot)[N], const int64 (&parts)[N][LEVELS]) const {
#pragma unroll
        for (int k = 0; k < LEVELS; ++k) {
            uint32* const at = memory + 2 * k * slots;
            uint32 upper[N];
#pragma unroll
            for (int n = 0; n < N; ++n) {
                const uint32 low = uint32(parts[n][k]);
                upper[n] = uint32(parts[n][k] >> 32);
                if (slot[n] != ~0u && (LEVELS == 1 || low)) {
                    const uint32 before = atomicAdd(at + slot[n], low);
                    upper[n] += before + low < low;
                }
            }
#pragma unroll
            for (int n = 0; n < N; ++n)
                if (slot[n] != ~0u && upper[n]) atomicAdd(at + slots + slot[n], upper[n]);
        }
#pragma unroll
        for (int n = 0; n < N; ++n)
            if (slot[n] != ~0u) atomicAdd(memory + 2 * LEVELS * slots + slot[n], 1u);
    }

    // Adds what there is to groups first … first + groups − 1, of which each has 2^copies slots, and clears it; with `alone` no other
    // block has elements of these groups.
    __device__ void drain(const KeyedState& state, uint64 first, uint32 groups, uint32 copies, bool alone) const {
        for (uint32 group = threadIdx.x; group < groups; group += blockDim.x) {
            uint32 count = 0;
            int64 sums[LEVELS] = {};
            for (uint32 copy = 0; copy < 1u << copies; ++copy) {
                const uint32 slot = group << copies | (copy + group & (1u << copies) - 1);  // so that banks differ
#pragma unroll
                for (int k = 0; k < LEVELS; ++k) {
                    uint32* const at = memory + 2 * k * slots + slot;
                    sums[k] += int64(uint64(at[slots]) << 32 | at[0]);
                    at[0] = at[slots] = 0;
                }
                count += memory[2 * LEVELS * slots + slot];
                memory[2 * LEVELS * slots + slot] = 0;
            }
            if (count == 0) continue;
#pragma unroll
            for (int k = 0; k < LEVELS; ++k) {
                if (alone)
                    state.put(k, first + group, sums[k]);
                else
                    state.add(k, first + group, sums[k]);
            }
            if (alone)
                state.counts[first + group] = count;
            else
                atomicAdd(state.counts + first + group, count);
        }
    }
};

// What a thread knows while it adds elements.
template <class V, int LEVELS>
struct KeyedAdder {
    const KeyedState& state;
    SharedSums<LEVELS> sums;
    LevelsOf<V, LEVELS> levels;
    bool omit_nan;
    bool missed = false, negative_zero = false;

    // Adds elements of these codes to slots (code − first) << copies | copy, those that are `there`.
    template <int N>
    __device__ void operator()(const uint32 (&code)[N], const bool (&there)[N], const V (&x)[N], uint32 first, uint32 copies,
                               uint32 copy) {
        uint32 slot[N];
        int64 parts[N][LEVELS];
#pragma unroll
        for (int n = 0; n < N; ++n) {
            double rest;
            const bool held = levels.split(x[n], parts[n], rest);
            slot[n] = there[n] ? code[n] - first << copies | copy : ~0u;
            negative_zero |= levels.is_negative_zero(x[n]);
            if (is_real<V> && !(held && rest == 0) && there[n]) {
                const Aside aside = state.template set_aside<V, LEVELS>(levels, code[n], x[n], held, rest, omit_nan);
                if (aside == LEFT_OUT) slot[n] = ~0u;
                if (aside != HELD)
#pragma unroll
                    for (int k = 0; k < LEVELS; ++k) parts[n][k] = 0;
            }
        }
        sums.add(slot, parts);
    }

    __device__ void note() const {
        state.note(MISSED, missed);
        state.note(NEGATIVE_ZEROS, negative_zero);
    }
};

// Elements that lie side by side; `at` is a multiple of their bytes.
template <int N, class T>
__device__ void read_together(const T* at, T (&out)[N]) {
    constexpr int BYTES = N * sizeof(T);
    uint32 words[BYTES < 4 ? 1 : BYTES / 4];
    if constexpr (BYTES >= 16) {
#pragma unroll
        for (int k = 0; k < BYTES / 16; ++k) {
            const Vector<uint32> vector = Vector<uint32>::load(reinterpret_cast<const char*>(at) + 16 * k);
#pragma unroll
            for (int word = 0; word < 4; ++word) words[4 * k + word] = vector.words[word];
        }
    } else {
#pragma unroll
        for (int k = 0; k < BYTES / 4; ++k) words[k] = reinterpret_cast<const uint32*>(at)[k];
    }
    memcpy(out, words, BYTES);
}

// Few groups: all of them find room in shared memory, each 2^copies times, so that lanes seldom meet. A block has `span` elements.
template <class K, class V, int LEVELS, int THREADS, int READS>
__device__ void add_few_groups(const K* keys, const V* values, uint64 count, uint64 span, const Codes<K>& codes, uint32 copies,
                               int unit, bool omit_nan, const KeyedState& state, uint32* memory) {
    constexpr int N = 4;
    constexpr uint64 TILE = THREADS * N * READS;
    KeyedAdder<V, LEVELS> add{state, {memory, uint32(codes.range) << copies}, LevelsOf<V, LEVELS>(unit), omit_nan};
    add.sums.clear();
    __syncthreads();
    const uint64 begin = blockIdx.x * span, end = begin + span < count ? begin + span : count;
    const uint64 whole = begin + (end - begin) / TILE * TILE;
    const uint32 copy = threadIdx.x & (1u << copies) - 1;
#pragma unroll 1
    for (uint64 at = begin + threadIdx.x * N; at < whole; at += TILE) {
        K key[READS][N];
        V x[READS][N];
#pragma unroll
        for (int k = 0; k < READS; ++k) {
            read_together(keys + at + k * THREADS * N, key[k]);
            read_together(values + at + k * THREADS * N, x[k]);
        }
#pragma unroll
        for (int k = 0; k < READS; ++k) {
            uint32 code[N];
            bool there[N];
#pragma unroll
            for (int n = 0; n < N; ++n) add.missed |= !(there[n] = codes.of(key[k][n], code[n]));
            add(code, there, x[k], 0, copies, copy);
        }
    }
#pragma unroll 1
    for (uint64 at = whole + threadIdx.x; at < end; at += THREADS) {
        uint32 code[1];
        bool there[1] = {codes.of(keys[at], code[0])};
        const V x[1] = {values[at]};
        add.missed |= !there[0];
        add(code, there, x, 0, copies, copy);
    }
    add.note();
    __syncthreads();
    add.sums.drain(state, 0, uint32(codes.range), copies, false);
}

// Many groups: elements lie by buckets of 2^bits groups each; bucket b has those from starts[b] on. A block has `span` elements, which
// are those of one bucket or of several.
template <class V, int LEVELS, int THREADS, int N>
__device__ void add_buckets(const uint32* codes, const V* values, const uint32* starts, uint32 buckets, uint32 bits, uint64 span,
                            int unit, bool omit_nan, const KeyedState& state, uint32* memory) {
    KeyedAdder<V, LEVELS> add{state, {memory, 1u << bits}, LevelsOf<V, LEVELS>(unit), omit_nan};
    add.sums.clear();
    __syncthreads();
    uint64 begin = blockIdx.x * span;
    const uint64 end = begin + span < starts[buckets] ? begin + span : starts[buckets];
    uint32 bucket = 0, above = buckets;  // starts[bucket] ≤ begin < starts[above]
    while (begin < end && above - bucket > 1) {
        const uint32 middle = bucket + above >> 1;
        (starts[middle] <= begin ? bucket : above) = middle;
    }
    for (; begin < end; ++bucket) {
        const uint64 next = starts[bucket + 1], stop = next < end ? next : end;
        if (stop <= begin) continue;
        const bool alone = begin == starts[bucket] && stop == next;
        const uint32 first = bucket << bits;
        const uint64 rest = state.range - first;
        const uint64 whole = begin + (stop - begin) / (THREADS * N) * (THREADS * N);
#pragma unroll 1
        for (uint64 at = begin + threadIdx.x; at < whole; at += THREADS * N) {
            uint32 code[N];
            V x[N];
            bool there[N];
#pragma unroll
            for (int n = 0; n < N; ++n) {
                code[n] = codes[at + n * THREADS];
                x[n] = values[at + n * THREADS];
                there[n] = true;
            }
            add(code, there, x, first, 0, 0);
        }
#pragma unroll 1
        for (uint64 at = whole + threadIdx.x; at < stop; at += THREADS) {
            const uint32 code[1] = {codes[at]};
            const V x[1] = {values[at]};
            const bool there[1] = {true};
            add(code, there, x, first, 0, 0);
        }
        begin = stop;
        __syncthreads();
        add.sums.drain(state, first, uint32(rest < 1ull << bits ? rest : 1ull << bits), 0, alone);
        __syncthreads();
    }
    add.note();
}
