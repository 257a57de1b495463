// Sorted keys: a warp has elements that lie side by side, adds up each run of equal keys in registers, and writes the sums of runs to
// the groups in memory. It adds those that may begin or end elsewhere. Whether keys are sorted is checked along the way.
//
// Prefix sums of integers wrap around as they please: their differences are the sums of runs.
#pragma once
#include "keyed_sums.cuh"

template <class V, int LEVELS>
struct RunSums {
    int64 sums[LEVELS];
    uint32 count;

    __device__ void clear() {
#pragma unroll
        for (int k = 0; k < LEVELS; ++k) sums[k] = 0;
        count = 0;
    }
    __device__ void add(const RunSums& other) {
#pragma unroll
        for (int k = 0; k < LEVELS; ++k) sums[k] += other.sums[k];
        count += other.count;
    }
    __device__ RunSums less(const RunSums& other) const {
        RunSums rest;
#pragma unroll
        for (int k = 0; k < LEVELS; ++k) rest.sums[k] = sums[k] - other.sums[k];
        rest.count = count - other.count;
        return rest;
    }
    __device__ RunSums of_lane(int lane) const {
        RunSums theirs;
#pragma unroll
        for (int k = 0; k < LEVELS; ++k) theirs.sums[k] = int64(__shfl_sync(~0u, uint64(sums[k]), lane));
        theirs.count = __shfl_sync(~0u, count, lane);
        return theirs;
    }
    // Of this lane and of those before.
    __device__ RunSums scanned() const {
        RunSums sum = *this;
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            RunSums theirs;
#pragma unroll
            for (int k = 0; k < LEVELS; ++k) theirs.sums[k] = int64(__shfl_up_sync(~0u, uint64(sum.sums[k]), distance));
            theirs.count = __shfl_up_sync(~0u, sum.count, distance);
            if (lane >= distance) sum.add(theirs);
        }
        return sum;
    }
    // Gives the group what it has here; with `alone` it has nothing elsewhere.
    __device__ void give(const KeyedState& state, uint32 code, bool alone) const {
        if (count == 0 || code >= state.range) return;  // a key that was missed has no group
#pragma unroll
        for (int k = 0; k < LEVELS; ++k) {
            if (alone)
                state.put(k, code, sums[k]);
            else
                state.add(k, code, sums[k]);
        }
        if (alone)
            state.counts[code] = count;
        else
            atomicAdd(state.counts + code, count);
    }
};

// Each warp has `span` elements, a multiple of its tile, below 2^21.
template <class K, class V, int LEVELS, int READS>
__device__ void add_runs(const K* keys, const V* values, uint64 count, uint64 span, const Codes<K>& codes, int unit, bool omit_nan,
                         const KeyedState& state) {
    constexpr int N = 4, WARP = 32;
    constexpr uint64 TILE = N * WARP;
    using Sums = RunSums<V, LEVELS>;
    const uint64 warp = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP;
    const uint64 begin = warp * span, end = begin + span < count ? begin + span : count;
    if (begin >= end) return;
    const int lane = threadIdx.x % WARP;
    const LevelsOf<V, LEVELS> levels(unit);
    bool missed = false, unsorted = false, negative_zero = false;
    Sums mine;  // of the run that goes on
    mine.clear();
    uint32 current;
    missed |= !codes.of(keys[begin], current);
    if (begin > 0) {
        uint32 before;
        missed |= !codes.of(keys[begin - 1], before);
        unsorted |= before > current;
    }

    const auto add = [&](const K (&key)[N], const V (&x)[N], int there) {
        uint32 code[N];
        Sums each[N];
        bool alike = true;
#pragma unroll
        for (int n = 0; n < N; ++n) {
            code[n] = current;
            each[n].clear();
            if (n < there) {
                const bool known = codes.of(key[n], code[n]);
                missed |= !known;
                double rest;
                const bool held = levels.split(x[n], each[n].sums, rest);
                each[n].count = 1;
                negative_zero |= levels.is_negative_zero(x[n]);
                if (is_real<V> && !(held && rest == 0) && known) {
                    const Aside aside = state.template set_aside<V, LEVELS>(levels, code[n], x[n], held, rest, omit_nan);
                    if (aside != HELD) each[n].clear();
                    if (aside == LISTED_INSTEAD) each[n].count = 1;
                }
            }
            alike = alike && code[n] == current;
        }
        if (__all_sync(~0u, alike)) {
#pragma unroll
            for (int n = 0; n < N; ++n) mine.add(each[n]);
            return;
        }
        // The elements that are not there lie behind all others, in the last run.
        const uint32 last = __shfl_sync(~0u, code[there ? there - 1 : 0], (__popc(__ballot_sync(~0u, there > 0)) - 1) & 31);
#pragma unroll
        for (int n = 0; n < N; ++n)
            if (n >= there) code[n] = last;
        Sums before = mine.scanned().of_lane(WARP - 1);  // what was carried
        if (__shfl_sync(~0u, code[0], 0) != current) {
            unsorted |= __shfl_sync(~0u, code[0], 0) < current;
            if (lane == 0) before.give(state, current, false);
            before.clear();
        }
#pragma unroll
        for (int n = 1; n < N; ++n) each[n].add(each[n - 1]);
        Sums to = each[N - 1].scanned().less(each[N - 1]);  // of the lanes before
        to.add(before);
#pragma unroll
        for (int n = 0; n < N; ++n) each[n].add(to);
        const uint32 next = __shfl_sync(~0u, code[0], (lane + 1) % WARP);
        Sums edge;  // the sums up to my last edge of a run
        edge.clear();
        bool edges = false;
#pragma unroll
        for (int n = 0; n < N; ++n)
            if (n + 1 < N ? code[n] != code[(n + 1) % N] : lane + 1 < WARP && code[n] != next) {
                unsorted |= code[n] > (n + 1 < N ? code[(n + 1) % N] : next);
                edge = each[n];
                edges = true;
            }
        const uint32 with = __ballot_sync(~0u, edges), lower = with & (1u << lane) - 1;
        Sums from = edge.of_lane(lower ? 31 - __clz(lower) : 0);
        if (!lower) from.clear();
        bool alone = lower;  // the run begins in this tile
#pragma unroll
        for (int n = 0; n < N; ++n)
            if (n + 1 < N ? code[n] != code[(n + 1) % N] : lane + 1 < WARP && code[n] != next) {
                each[n].less(from).give(state, code[n], alone);
                from = each[n];
                alone = true;
            }
        Sums whole = each[N - 1].of_lane(WARP - 1);
        if (with) whole = whole.less(edge.of_lane(31 - __clz(with)));
        mine.clear();
        if (lane == 0) mine = whole;
        current = last;
    };

    uint64 at = begin + lane * N;
    const uint64 whole = begin + (end - begin) / (TILE * READS) * (TILE * READS);
#pragma unroll 1
    for (; at < whole; at += TILE * READS) {
        K key[READS][N];
        V x[READS][N];
#pragma unroll
        for (int k = 0; k < READS; ++k) {
            read_together(keys + at + k * TILE, key[k]);
            read_together(values + at + k * TILE, x[k]);
        }
#pragma unroll
        for (int k = 0; k < READS; ++k) add(key[k], x[k], N);
    }
#pragma unroll 1
    for (uint64 first = whole; first < end; first += TILE, at += TILE) {  // all lanes
        K key[N];
        V x[N];
        const int there = at >= end ? 0 : end - at < N ? int(end - at) : N;
#pragma unroll
        for (int n = 0; n < N; ++n)
            if (n < there) {
                key[n] = keys[at + n];
                x[n] = values[at + n];
            }
        add(key, x, there);
    }
    const Sums rest = mine.scanned();
    if (lane == WARP - 1) rest.give(state, current, false);
    state.note(MISSED, missed);
    state.note(UNSORTED, unsorted);
    state.note(NEGATIVE_ZEROS, negative_zero);
}
