// Segments of any lengths as one stream: each warp has the same number of elements, however many segments these belong to.
//
// A warp takes tile after tile of neighbouring elements, and reads the next one while it adds one up. It knows all edges of
// segments that lie in a tile, and the sum of a segment is the difference of two prefix sums. These are integers, and so exact:
// if the exponents of a tile's elements span little, each element is a whole number of units, at most 2^50 in magnitude, and
// the number is read off the bits of its sum with the anchor 1.5 · 2^52 units (docs/exactness.md, the anchored addition). An
// element of float64 is two such numbers, of units that are 2^50 apart. Prefix sums of bits are taken modulo 2^64; the
// difference of two, less as many anchors as there are elements between, is below 2^50 · 2^9 in magnitude. What a segment has
// in earlier tiles is carried on as an integer while the unit stays.
//
// Otherwise, where there is an infinity or a NaN, and where the unit changes or the carried integer grows too large, segments
// are left to another launch, in which lanes of warps add them up as other spans.
#pragma once
#include "asynchronous.cuh"
#include "grouped_rows.cuh"

// The whole numbers that an element is made of.
template <class T>
struct FixedWindow;

template <>
struct FixedWindow<float32> {
    static constexpr int PLANES = 1, SPAN = 26;  // exponents lie at most SPAN apart
    int unit = 0;
    double anchor = 0;

    __device__ bool start(int top) {
        unit = top - 49;
        anchor = Window<2, 0, 0, 11>::bias(unit, 0);
        return true;
    }
    __device__ void split(float32 x, uint64 (&bits)[1]) const { bits[0] = __double_as_longlong(anchor + double(x)); }
    __device__ uint32 anchored(int) const { return uint32(uint64(__double_as_longlong(anchor)) >> 32); }
    static __device__ double power(int exponent) { return __longlong_as_double(int64(exponent + 1023) << 52); }

    template <bool MEAN>
    __device__ void put(const Results<float32>& results, uint64 at, const int64 (&k)[1], uint64 count) const {
        const double scale = power(unit);
        if (!MEAN || k[0] == 0) {  // a small sum is a multiple of the least float32, and not rounded at all
            results.values[at] = float(double(float(k[0])) * scale);
            return;
        }
        const double level[2] = {double(k[0] >> 32) * 0x1p32 * scale, double(uint32(k[0])) * scale};
        results.put(at, level, 0.0, count, false);
    }
};

template <>
struct FixedWindow<float64> {
    static constexpr int PLANES = 2, SPAN = 47, APART = 50;
    int unit = 0;  // of the second plane
    double first = 0, second = 0;

    __device__ bool start(int top) {
        unit = top - 99;
        if (unit < -1000 || unit > 850) return false;
        first = Window<2, 0, 0, 11>::bias(unit + APART, 0);
        second = Window<2, 0, 0, 11>::bias(unit, 0);
        return true;
    }
    __device__ void split(float64 x, uint64 (&bits)[2]) const {
        const double sum = first + x;
        bits[0] = __double_as_longlong(sum);
        bits[1] = __double_as_longlong(second + (x - (sum - first)));
    }
    __device__ uint32 anchored(int plane) const {
        return uint32(uint64(__double_as_longlong(plane == 0 ? first : second)) >> 32);
    }

    template <bool MEAN>
    __device__ void put(const Results<float64>& results, uint64 at, const int64 (&k)[2], uint64 count) const {
        const double upper = FixedWindow<float32>::power(unit + APART), lower = FixedWindow<float32>::power(unit);
        const int64 over = k[1] >> APART, high = k[0] + over, low = k[1] - (over << APART);  // low is below 2^50
        const double nearest = double(high);
        if (!MEAN && (uint64(high) + (1ull << 53)) <= 1ull << 54) {
            results.values[at] = nearest * upper + double(low) * lower;  // rounded once
            return;
        }
        const double level[3] = {nearest * upper, double(high - int64(nearest)) * upper, double(low) * lower};
        if constexpr (MEAN)
            results.put(at, level, 0.0, count, false);
        else
            round_sum(results.values[at], sum_of(level));
    }
};

__device__ inline uint64 edge_of(const Spans& spans, uint64 number) {
    if (spans.offsets) return uint64(spans.offsets[number]);
    return number * spans.length < spans.total ? number * spans.length : spans.total;
}

// The first segment of a warp's share. A share has so many elements and segments: the latter count as SEGMENT_COSTS elements each.
constexpr uint64 SEGMENT_COSTS = 2;
__device__ inline uint64 first_of_share(const Spans& spans, uint64 start) {
    const uint64 origin = edge_of(spans, 0);
    uint64 low = 0, high = spans.count;  // what is looked for lies between, both included
    while (low < high) {
        const uint64 step = (high - low + 31) / 32, at = low + (threadIdx.x % 32 + 1) * step - 1;
        const bool before = at < high && edge_of(spans, at) - origin + at * SEGMENT_COSTS < start;
        low += __popc(__ballot_sync(~0u, before)) * step;
        if (low + step - 1 < high) high = low + step - 1;
    }
    return low;
}

constexpr int64 MOST_CARRIED = 1ll << 61;
constexpr int PENDING = 2;  // tiles: the sums of a warp's elements in so many are below 2^60

template <class T, int READS>
struct Stream {
    using F = FixedWindow<T>;
    static constexpr int N = Vector<T>::size, EACH = READS * N, TILE = 32 * EACH, PLACES = TILE + 32;
    static constexpr int BYTES = 2 * READS * 32 * 16 + F::PLANES * PLACES * 8;  // of shared memory for each warp
    static_assert(PLACES % 2 == 0 && TILE <= 512);
};

// A segment that another launch adds up: a NaN whose bits no result has.
template <class T>
__device__ T later() {
    T value;
    set_bits(value, sizeof(T) == 8 ? 0x7ff8'6c61'7465'7200ull : 0x7fc6'6c74ull);
    return value;
}

// Adds up the segments that were left to later, if there are any; the grid has any number of blocks.
template <class T, int LANES, int FLIGHT>
__device__ void sum_left(const T* data, const Spans& spans, const Results<T>& results, const uint32* left) {
    if (!*left) return;
    const uint64 step = uint64(gridDim.x) * blockDim.x / LANES, mine = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
#pragma unroll 1
    for (uint64 from = 0; from < spans.count; from += step) {
        const uint64 at = from + mine;
        const bool is_one = at < spans.count && bits_of(results.values[at]) == bits_of(later<T>());
        __syncwarp();
        if (!__all_sync(~0u, !is_one))
            sum_span<T, T, LANES, false, FLIGHT, false>(data, spans, at, is_one, results, nullptr, nullptr);
    }
}

// `memory`: Stream::BYTES for each warp of the block. A warp has about `share` elements and segments. ENDS edges of each lane
// are read ahead. *left becomes 1 where a segment is left to sum_left.
template <class T, int READS, int ENDS, bool MEAN>
__device__ void sum_stream(const T* data, const Spans& spans, uint64 share, const Results<T>& results, uint32* left,
                           char* memory) {
    using S = Stream<T, READS>;
    using F = FixedWindow<T>;
    constexpr int N = S::N, EACH = S::EACH, TILE = S::TILE, PLANES = F::PLANES;
    constexpr uint64 NEVER = ~0ull;
    const int lane = threadIdx.x % 32;
    const uint64 warp = uint64(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    uint4* const buffers = reinterpret_cast<uint4*>(memory + threadIdx.x / 32 * S::BYTES);
    uint64* const prefixes = reinterpret_cast<uint64*>(buffers + 2 * READS * 32);
    const uint64 first = first_of_share(spans, warp * share), last = first_of_share(spans, (warp + 1) * share);
    if (first == last) return;
    const uint64 limit = edge_of(spans, spans.count);

    const auto fetch = [&](uint64 from, int buffer) {
#pragma unroll
        for (int r = 0; r < READS; ++r) {
            const uint32 vector = r * 32 + lane;
            const uint64 at = from + vector * N;
            uint4* const to = buffers + buffer * READS * 32 + (vector ^ (vector >> 3 & (READS - 1)));  // without bank conflicts
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
#pragma unroll
        for (int j = 0; j < ENDS; ++j) {
            const uint64 number = next + j * 32 + lane;
            edges[j] = number <= last ? edge_of(spans, number) : NEVER;
        }
    };
    F window;
    Gate<T> gate;
    uint64 opened = edge_of(spans, first), start = opened / N * N;
    int64 carried[PLANES] = {};
    bool broken = false;  // what is carried is not all of the open segment
    uint64 pending[PLANES] = {};  // what this lane has of the open segment in tiles without an edge
    int tiles_pending = 0;
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
                within[j] = inside ? int(edges[j] - start) : TILE + 1;
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
            const uint32 vector = lane * READS + r;
            const uint4 v = buffers[buffer * READS * 32 + (vector ^ (vector >> 3 & (READS - 1)))];
            tile.vectors[r] = {{v.x, v.y, v.z, v.w}};
        }
        const Extent<T> extent = extent_of(tile);
        bool fits = __all_sync(~0u, extent.all_zero() || gate.admits(extent));
        if (!fits) {
            const Extent<T> all = extent.of_warp();
            if (all.all_finite() && all.highest() - all.lowest() <= F::SPAN) {
                const int spare = F::SPAN - (all.highest() - all.lowest()), top = all.highest() + (spare < 3 ? spare : 3);
                fits = window.start(top);
                gate = fits ? Gate<T>(Range{top - F::SPAN, top}) : Gate<T>();
                broken = broken || opened < start;
            }
        }
        if (fits && !ends && tiles_pending < PENDING) {
#pragma unroll
            for (int p = 0; p < PLANES; ++p) pending[p] -= uint64(uint32(EACH) * window.anchored(p)) << 32;
#pragma unroll
            for (int at = 0; at < EACH; ++at) {
                uint64 bits[PLANES];
                window.split(tile[at], bits);
#pragma unroll
                for (int p = 0; p < PLANES; ++p) pending[p] += bits[p];
            }
            ++tiles_pending;
            broken = broken || following != stop;
            start = following;
            __syncwarp();
            continue;
        }
        if (tiles_pending) {
#pragma unroll
            for (int p = 0; p < PLANES; ++p) {
#pragma unroll
                for (int distance = 16; distance > 0; distance /= 2)
                    pending[p] += __shfl_xor_sync(~0u, pending[p], distance);
                carried[p] += int64(pending[p]);
                pending[p] = 0;
                if (uint64(carried[p] + MOST_CARRIED) > 2 * uint64(MOST_CARRIED)) broken = true;
            }
            tiles_pending = 0;
        }
        uint64 bases[PLANES], whole[PLANES];
        if (fits) {
            uint64 sums[PLANES] = {};
#pragma unroll
            for (int at = 0; at < EACH; ++at) {
                uint64 bits[PLANES];
                window.split(tile[at], bits);
#pragma unroll
                for (int p = 0; p < PLANES; ++p) {
                    sums[p] += bits[p];
                    prefixes[p * S::PLACES + lane * (EACH + 1) + at] = sums[p];
                }
            }
#pragma unroll
            for (int p = 0; p < PLANES; ++p) {
                uint64 inclusive = sums[p];
#pragma unroll
                for (int distance = 1; distance < 32; distance *= 2) {
                    const uint64 other = __shfl_up_sync(~0u, inclusive, distance);
                    if (lane >= distance) inclusive += other;
                }
                bases[p] = inclusive - sums[p];
                whole[p] = __shfl_sync(~0u, inclusive, 31) - (uint64(uint32(TILE) * window.anchored(p)) << 32);
            }
        }
        __syncwarp();
        // the last edge before, and the prefix sums there
        int64 edge_before = int64(opened) - int64(start);
        if (edge_before < -(1 << 30)) edge_before = -(1 << 30);
        int edge_at = int(edge_before);
        uint64 sums_at[PLANES];
#pragma unroll
        for (int p = 0; p < PLANES; ++p) sums_at[p] = -uint64(carried[p]);
        uint64 number = before;  // of the first edge in `within`
        bool any = false;
        for (;;) {
#pragma unroll
            for (int j = 0; j < ENDS; ++j) {
                if (j * 32 >= ends) break;
                const int many = ends - j * 32 < 32 ? ends - j * 32 : 32, here = within[j];
                if (!fits) {
                    if (lane < many && number + j * 32 + lane > first)
                        results.values[number + j * 32 + lane - 1] = later<T>();
                } else {
                    const int place = (here < 1 ? 1 : here > TILE ? TILE : here) - 1, owner = place / EACH;
                    int64 k[PLANES];
                    uint64 sums[PLANES];
                    bool zero = true;
#pragma unroll
                    for (int p = 0; p < PLANES; ++p) {
                        sums[p] = prefixes[p * S::PLACES + place + owner] + __shfl_sync(~0u, bases[p], owner) -
                                  (uint64(uint32(here) * window.anchored(p)) << 32);
                        if (here == 0) sums[p] = 0;
                        const uint64 prior = __shfl_up_sync(~0u, sums[p], 1);
                        k[p] = int64(sums[p] - (lane ? prior : sums_at[p]));
                        zero = zero && k[p] == 0;
                        sums_at[p] = __shfl_sync(~0u, sums[p], many - 1);
                    }
                    const int prior = __shfl_up_sync(~0u, here, 1), length = here - (lane ? prior : edge_at);
                    const uint64 ending = number + j * 32 + lane;
                    if (lane < many && ending > first) {
                        if (broken && ending == number) {
                            results.values[ending - 1] = later<T>();
                        } else if (zero && length) {  // −0 if all elements are
                            const uint64 end = start + here;
                            uint64 at = end - length;
                            while (at < end && bits_of(data[at]) == SIGN<T>) ++at;
                            set_bits(results.values[ending - 1], at == end ? SIGN<T> : 0);
                        } else {
                            window.template put<MEAN>(results, ending - 1, k, length);
                        }
                    }
                }
                edge_at = __shfl_sync(~0u, here, many - 1);
            }
            if ((!fits || broken) && ends && lane == 0) *left = 1;
            any = any || ends;
            broken = broken && !ends;
            if (!more) break;
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
        if (next > last) break;
        if (any) opened = start + edge_at;
#pragma unroll
        for (int p = 0; p < PLANES; ++p) {
            carried[p] = fits ? int64(whole[p] - sums_at[p]) : 0;
            if (uint64(carried[p] + MOST_CARRIED) > 2 * uint64(MOST_CARRIED)) broken = true;
        }
        if (!fits) broken = broken || opened < stop;
        if (following != stop) broken = true;
        start = following;
    }
    await_groups<0>();
}
