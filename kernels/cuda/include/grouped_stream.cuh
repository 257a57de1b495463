// Segments of any lengths as one stream: each warp has the same number of elements and segments, however many segments these belong to.
//
// A warp takes tile after tile of neighbouring elements, and reads the next one while it adds one up. It knows all edges of segments
// that lie in a tile, and the sum of a segment is the difference of two prefix sums. Prefix sums are doubles that never round
// (grouped_fixed.cuh), one for float32 and two for float64, as long as the exponents of the elements span little: in shared memory are
// the sums before each element of a lane, and what all lanes before it have. What the open segment has in earlier tiles is carried on
// while the window stays. Tiles without an edge are added up by each lane for itself, and by the warp after PENDING of them.
//
// Where there is an infinity or a NaN, where the exponents span too much, and where the window changes or what is carried grows too
// large, segments are left to another launch (grouped_left.cuh), in which lanes of warps add them up as other spans.
#pragma once
#include "asynchronous.cuh"
#include "grouped_fixed.cuh"
#include "grouped_left.cuh"

__device__ inline uint64 edge_of(const Spans& spans, uint64 number) { return uint64(spans.offsets[number]); }

// The segments of a warp's share. A share has so many elements and segments: the latter count as SEGMENT_COSTS elements each.
constexpr uint64 SEGMENT_COSTS = 2;
struct Share {
    uint64 first, last;  // its segments: from the first on, without the last
};
__device__ inline Share share_of(const Spans& spans, uint64 start, uint64 stop) {
    const uint64 origin = edge_of(spans, 0), lane = threadIdx.x % 32;
    uint64 low[2] = {}, high[2] = {spans.count, spans.count};  // what is looked for lies between, both included
    while (low[0] < high[0] || low[1] < high[1]) {  // both at once, because each look waits for memory
        uint64 edges[2];
#pragma unroll
        for (int end = 0; end < 2; ++end) {
            const uint64 at = low[end] + (lane + 1) * ((high[end] - low[end] + 31) / 32) - 1;
            edges[end] = low[end] < high[end] && at < high[end] ? edge_of(spans, at) - origin + at * SEGMENT_COSTS : ~0ull;
        }
#pragma unroll
        for (int end = 0; end < 2; ++end) {
            const uint64 step = (high[end] - low[end] + 31) / 32;
            low[end] += __popc(__ballot_sync(~0u, edges[end] < (end ? stop : start))) * step;
            if (step && low[end] + step - 1 < high[end]) high[end] = low[end] + step - 1;
        }
    }
    return {low[0], low[1]};
}

// The sum of what this lane and those before it have, where no addition rounds. Lanes without one so far away add nothing: the
// exchange itself says so, which saves a choice a word.
__device__ inline double of_lanes_so_far(double sum) {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
#if __CUDA_ARCH__ >= 800
        asm volatile("{.reg .pred there; .reg .b32 low, high; .reg .f64 other; mov.b64 {low, high}, %0;"
            "shfl.sync.up.b32 low, low, %1, 0, 0xffffffff; shfl.sync.up.b32 high|there, high, %1, 0, 0xffffffff;"
            "mov.b64 other, {low, high}; @there add.rn.f64 %0, %0, other;}"
            : "+d"(sum)
            : "r"(distance));
#else
        const double other = __shfl_up_sync(~0u, sum, distance);
        if (int(threadIdx.x % 32) >= distance) sum += other;
#endif
    }
    return sum;
}

constexpr int PENDING = 2;  // tiles: what a lane has in so many is at most 2^52 units

template <class T, int READS>
struct Stream {
    using F = FixedWindow<T>;
    // For each lane a row: the sums before each of its elements, and what lanes before it have. One more row is for the tile's end.
    static constexpr int N = Vector<T>::size, EACH = READS * N, TILE = 32 * EACH, ROW = EACH + 1, PLACES = 33 * ROW + 1;
    // Of shared memory for each warp, so many that copies of 512 bytes begin at a row of banks.
    static constexpr int BYTES = (2 * READS * 32 * 16 + F::PLANES * PLACES * 8 + 127) / 128 * 128;
    static_assert(PLACES % 2 == 0 && TILE <= 512);
};

// `memory`: Stream::BYTES for each warp of the block. A warp has about `share` elements and segments. ENDS edges of each lane
// are read ahead. `left` lists the segments that are left to sum_left.
template <class T, int READS, int ENDS, bool MEAN>
__device__ void sum_stream(const T* data, const Spans& spans, uint64 share, const Results<T>& results, uint64* left,
                           char* memory) {
    using S = Stream<T, READS>;
    using F = FixedWindow<T>;
    constexpr int N = S::N, EACH = S::EACH, TILE = S::TILE, PLANES = F::PLANES;
    constexpr uint64 NEVER = ~0ull;
    const int lane = threadIdx.x % 32;
    const uint64 warp = uint64(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    uint4* const buffers = reinterpret_cast<uint4*>(memory + threadIdx.x / 32 * S::BYTES);
    double* const prefixes = reinterpret_cast<double*>(buffers + 2 * READS * 32);
    if (lane == 0)
        for (int p = 0; p < PLANES; ++p) prefixes[p * S::PLACES + 32 * S::ROW] = 0;
    const Share mine = share_of(spans, warp * share, (warp + 1) * share);
    const uint64 first = mine.first, last = mine.last;
    if (first == last) return;
    const uint64 limit = edge_of(spans, spans.count);

    // A read is swizzled in its place, and the reads of a lane in theirs, without bank conflicts.
    const uint32 swizzled = lane ^ (lane >> 3 & (READS - 1)), own = lane * READS | (lane * READS >> 3 & (READS - 1));
    const T* const source = data + lane * N;
    const auto fetch = [&](uint64 from, int buffer) {
        if (from + TILE <= limit) {
            uint4* const to = buffers + buffer * READS * 32 + swizzled;
            const T* const at = source + from;
#pragma unroll
            for (int r = 0; r < READS; ++r) copy_later(to + r * 32, at + r * 32 * N);
            end_group();
            return;
        }
#pragma unroll
        for (int r = 0; r < READS; ++r) {
            const uint32 vector = r * 32 + lane;
            const uint64 at = from + vector * N;
            uint4* const to = buffers + buffer * READS * 32 + r * 32 + swizzled;
            if (at + N <= limit) {
                copy_later(to, data + at);
            } else {
                T elements[N];
#pragma unroll
                for (int k = 0; k < N; ++k) {
                    set_bits(elements[k], 0);
                    if (at + k < limit) elements[k] = data[at + k];
                }
                memcpy(to, elements, 16);
            }
        }
        end_group();
    };

    uint64 next = first;  // the edge that is looked for: where the open segment ends
    uint64 edges[ENDS];   // from `next` on
    const auto look_ahead = [&] {
        const int64 others = int64(last - next);
        const int left_over = others < 32 * ENDS ? int(others) : 32 * ENDS;  // after the next edge
#pragma unroll
        for (int j = 0; j < ENDS; ++j) edges[j] = j * 32 + lane <= left_over ? edge_of(spans, next + lane + j * 32) : NEVER;
    };
    F window;
    Gate<T> gate;
    uint64 opened = edge_of(spans, first), start = opened / N * N;
    double carried[PLANES] = {};
    bool broken = false;  // what is carried is not all of the open segment
    double pending[PLANES] = {};  // what this lane has of the open segment in tiles without an edge
    int tiles_pending = 0;
    const auto within_limit = [&](const double (&sums)[PLANES], double share) {
        bool all = true;
#pragma unroll
        for (int p = 0; p < PLANES; ++p) all = all && fabs(sums[p]) <= window.limit[p] * share;
        return all;  // of NaN this is false
    };
    fetch(start, 0);
    look_ahead();
#pragma unroll 1
    for (int buffer = 0;; buffer ^= 1) {
        const uint64 stop = start + TILE;
        int ends = 0;
        int within[ENDS];  // edges in this tile
        const auto place_edges = [&] {
            ends = 0;
#pragma unroll
            for (int j = 0; j < ENDS; ++j) {
                const bool inside = edges[j] <= stop;
                within[j] = inside ? int(uint32(edges[j]) - uint32(start)) : TILE;
                ends += __popc(__ballot_sync(~0u, inside));
            }
        };
        place_edges();
        bool more = ends == 32 * ENDS;  // perhaps there are more edges in this tile
        uint64 following = stop;
        if (!ends) {  // perhaps the open segment is a giant, whose other elements are another launch's
            const uint64 closing = __shfl_sync(~0u, edges[0], 0);
            if (closing - opened > spans.longest && closing / N * N > stop) following = closing / N * N;
        }
        const bool ended = next + ends > last;
        const uint64 before = next;
        if (!ended && following < limit) fetch(following, buffer ^ 1);
        else end_group();
        if (!more) {
            next += ends;
            look_ahead();
        }
        await_groups<1>();
        __syncwarp();
        Tile<T, READS> tile;
#pragma unroll
        for (int r = 0; r < READS; ++r) {
            const uint4 v = buffers[buffer * READS * 32 + (own ^ r)];
            tile.vectors[r] = {{v.x, v.y, v.z, v.w}};
        }
        const Extent<T> extent = quick_extent(tile);
        bool fits = __all_sync(~0u, extent.all_zero() || gate.admits(extent));
        if (!fits) {
            const Extent<T> all = extent.of_warp();
            if (all.all_finite() && all.highest() - all.lowest() <= F::SPAN) {
                // so far below that smaller elements find room, and the sum of a tile, too
                const int spare = F::SPAN - (all.highest() - all.lowest()) - F::OVER, below = spare < 0 ? 0 : spare < 6 ? spare : 6;
                const bool finer = all.lowest() - below <= window.lowest;
                fits = window.start(all.lowest() - below);
                gate = fits ? Gate<T>(Range{window.lowest, window.lowest + F::SPAN}) : Gate<T>();
                broken = broken || (opened < start && !(finer && within_limit(carried, 1)));
            }
        }
        if (fits && !ends && tiles_pending < PENDING) {
#pragma unroll
            for (int at = 0; at < EACH; ++at) {
                double parts[PLANES];
                window.split(tile[at], parts);
#pragma unroll
                for (int p = 0; p < PLANES; ++p) pending[p] += parts[p];
            }
            ++tiles_pending;
            broken = broken || following != stop;
            start = following;
            __syncwarp();
            continue;
        }
        if (tiles_pending) {
            if (!__all_sync(~0u, within_limit(pending, 1.0 / 32))) broken = true;
#pragma unroll
            for (int p = 0; p < PLANES; ++p) {
#pragma unroll
                for (int distance = 16; distance > 0; distance /= 2)
                    pending[p] += __shfl_xor_sync(~0u, pending[p], distance);
                carried[p] += pending[p];
                pending[p] = 0;
            }
            broken = broken || !within_limit(carried, 1);
            tiles_pending = 0;
        }
        double whole[PLANES];
        if (fits) {
            double sums[PLANES] = {}, inclusive[PLANES];
#pragma unroll
            for (int at = 0; at < EACH; ++at) {
                double parts[PLANES];
                window.split(tile[at], parts);
#pragma unroll
                for (int p = 0; p < PLANES; ++p) {
                    prefixes[p * S::PLACES + lane * S::ROW + at] = sums[p];
                    sums[p] += parts[p];
                }
            }
#pragma unroll
            for (int p = 0; p < PLANES; ++p) {
                inclusive[p] = of_lanes_so_far(sums[p]);
                prefixes[p * S::PLACES + lane * S::ROW + EACH] = inclusive[p] - sums[p];
                if (lane == 31) prefixes[p * S::PLACES + 32 * S::ROW + EACH] = inclusive[p];
                whole[p] = __shfl_sync(~0u, inclusive[p], 31);
            }
            fits = __all_sync(~0u, within_limit(inclusive, 1));
        }
        __syncwarp();
        // the last edge before, and the prefix sums there
        int64 edge_before = int64(opened) - int64(start);
        if (edge_before < -(1 << 30)) edge_before = -(1 << 30);
        int edge_at = int(edge_before);
        double sums_at[PLANES];
#pragma unroll
        for (int p = 0; p < PLANES; ++p) sums_at[p] = -carried[p];
        // where edges lie, and the values of the segments that end there: the elements of this tile are in registers
        int* const places = reinterpret_cast<int*>(buffers + buffer * READS * 32);
        T* const found = reinterpret_cast<T*>(places + READS * 64);
        static_assert(ENDS == 1 || ENDS * int(sizeof(T)) <= READS * 8);
        const auto sums_before = [&](uint32 at, double (&sums)[PLANES]) {
            const uint32 row = at / EACH;
#pragma unroll
            for (int p = 0; p < PLANES; ++p)
                sums[p] = prefixes[p * S::PLACES + at + row] + prefixes[p * S::PLACES + row * S::ROW + EACH];
        };
        uint64 number = before;  // of the first edge in `within`
        bool any = false;
        for (;;) {
            if (ends) {
                // Edges one after another are a lane's, so that it has both ends of most segments.
                int here[ENDS];
                if (ENDS == 1) {
                    here[0] = within[0];
                } else {
#pragma unroll
                    for (int j = 0; j < ENDS; ++j) places[j * 32 + lane] = within[j];
                    __syncwarp();
#pragma unroll
                    for (int j = 0; j < ENDS; ++j) here[j] = places[lane * ENDS + j];
                }
                const int closing = ENDS == 1 ? __shfl_sync(~0u, here[0], ends - 1) : places[ends - 1];
                const bool begins = number == first;  // the first edge ends no segment of this warp
                T values[ENDS];
                if (fits) {
                    double sums[ENDS][PLANES], prior[PLANES];
#pragma unroll
                    for (int j = 0; j < ENDS; ++j) sums_before(here[j], sums[j]);
                    int prior_at = __shfl_up_sync(~0u, here[ENDS - 1], 1);
                    if (lane == 0) prior_at = edge_at;
#pragma unroll
                    for (int p = 0; p < PLANES; ++p) {
                        prior[p] = __shfl_up_sync(~0u, sums[ENDS - 1][p], 1);
                        if (lane == 0) prior[p] = sums_at[p];
                    }
                    const auto sum_of = [&](int j, double (&k)[PLANES]) {  // returns whether it is 0
                        bool zero = true;
#pragma unroll
                        for (int p = 0; p < PLANES; ++p) {
                            k[p] = sums[j][p] - (j ? sums[j - 1][p] : prior[p]);
                            zero = zero & (k[p] == 0);
                        }
                        return zero;
                    };
                    const auto length_of = [&](int j) { return here[j] - (j ? here[j - 1] : prior_at); };
                    const auto is_mine = [&](int j) {  // nor does the first edge end a segment that is broken, or another warp's
                        return lane * ENDS + j < ends && !(lane == 0 && j == 0 && (begins || broken));
                    };
                    bool any_zero = false;
#pragma unroll
                    for (int j = 0; j < ENDS; ++j) {
                        double k[PLANES];
                        any_zero |= sum_of(j, k);
                        values[j] = 0;
                        if (!MEAN || is_mine(j)) values[j] = window.template value<MEAN>(results, k, length_of(j));
                    }
                    if (any_zero)  // −0 if all elements are
#pragma unroll
                        for (int j = 0; j < ENDS; ++j) {
                            double k[PLANES];
                            if (!length_of(j) || !is_mine(j) || !sum_of(j, k)) continue;
                            const uint64 end = start + here[j];
                            uint64 at = end - length_of(j);
                            while (at < end && bits_of(data[at]) == SIGN<T>) ++at;
                            set_bits(values[j], at == end ? SIGN<T> : 0);
                        }
                    if (lane == 0 && broken) values[0] = later<T>();
                    sums_before(closing, sums_at);
                } else {
#pragma unroll
                    for (int j = 0; j < ENDS; ++j) values[j] = later<T>();
                }
                edge_at = closing;
                if (ENDS == 1) {
                    if (lane < ends && !(begins && lane == 0)) results.values[number + lane - 1] = values[0];
                } else {
#pragma unroll
                    for (int j = 0; j < ENDS; ++j) found[lane * ENDS + j] = values[j];
                    __syncwarp();
                    T* const to = results.values + (number - 1);
#pragma unroll
                    for (int j = 0; j < ENDS; ++j)
                        if (j * 32 + lane < ends && !(begins && j == 0 && lane == 0)) to[j * 32 + lane] = found[j * 32 + lane];
                }
            }
            if ((!fits || broken) && ends && lane == 0) {
                const uint64 from = number > first ? number : first + 1;
                const uint64 to = fits ? number + 1 : number + ends;
                if (from < to) leave(left, from - 1, uint32(to - from));
            }
            any = any || ends;
            broken = broken && !ends;
            if (!more) break;
            __syncwarp();  // before places are written over
            number += ends;
            next = number;
            look_ahead();
            place_edges();
            more = ends == 32 * ENDS;
            if (!more) {
                next = number + ends;
                look_ahead();
            }
        }
        __syncwarp();  // before what is in memory is read over
        if (next > last) break;
        if (any) opened = start + edge_at;
#pragma unroll
        for (int p = 0; p < PLANES; ++p) carried[p] = fits ? whole[p] - sums_at[p] : 0;
        broken = broken || (fits && !within_limit(carried, 1));
        if (!fits) {
            broken = broken || opened < stop;
            gate = Gate<T>();  // the next tile chooses a window
        }
        if (following != stop) broken = true;
        start = following;
    }
    await_groups<0>();
}
