// Sorted keys of many groups: a block takes a tile of neighbouring rows, and the groups that begin in it come out side by side.
//
// Every element is one or two whole numbers of fixed units, read off the bits of sums with anchors (docs/exactness.md), and each thread
// puts the sum of its numbers before each head into shared memory (keyed_tile.cuh). A group that ends in its tile is the difference of
// two such prefix sums, and is rounded there. Which groups come before a tile is known from the tiles before it, each of which says how many heads it has as soon as it knows (D. Merrill and M. Garland, Single-pass Parallel
// Prefix Scan with Decoupled Look-back, NVIDIA 2016). Groups that lie in several tiles are put together by later launches.
//
// A group with an element that the units do not hold, such as an infinity, is listed and read again.
#pragma once
#include "keyed_total.cuh"
#include "keyed_finish.cuh"
#include "keyed_progress.cuh"
#include "keyed_tile.cuh"

// Elements as whole numbers of 2^unit and, where PLANES is 2, of 2^(unit + 50) before: those below 2^(unit + 50 · PLANES) that are
// multiples of 2^unit.
template <class V, int PLANES>
struct Planes {
    static constexpr int APART = 50;
    static_assert(PLANES == 1 || PLANES == 2);
    int unit;
    V limit;
    double anchors[PLANES];

    __device__ explicit Planes(int unit) : unit(unit), limit(V(power_of_two(unit + APART * PLANES))) {
        if (limit == 0) set_bits(limit, 1);  // zeros are held in any case
#pragma unroll
        for (int p = 0; p < PLANES; ++p) anchors[p] = 1.5 * power_of_two(unit + APART * (PLANES - 1 - p) + 52);
    }

    // False if x is not held; its bits are any numbers then.
    __device__ bool split(V x, uint64 (&bits)[PLANES]) const {
        double rest = widen(x);
#pragma unroll
        for (int p = 0; p < PLANES; ++p) {
            const double sum = anchors[p] + rest;
            bits[p] = __double_as_longlong(sum);
            rest -= sum - anchors[p];
        }
        return fabs(x) < limit && rest == 0;
    }
    // What the anchors of so many elements are in the sum of their bits.
    __device__ uint64 anchored(int plane, uint32 count) const {
        return uint64(count * uint32(uint64(__double_as_longlong(anchors[plane])) >> 32)) << 32;
    }
    // The sum of a group, or its mean, rounded once; false where that is not sure.
    template <bool MEAN>
    __device__ bool round(const int64 (&k)[PLANES], uint32 count, V& value) const {
        if constexpr (PLANES == 1 && !MEAN && sizeof(V) == 4) {  // a small sum is a multiple of the least float32, and not rounded at all
            value = float(double(float(k[0])) * power_of_two(unit));
            return true;
        } else if constexpr (PLANES == 1) {
            const double scale = power_of_two(unit);
            const double level[2] = {double(k[0] >> 32) * 0x1p32 * scale, double(uint32(k[0])) * scale};
            return finished<MEAN>(sum_of(level), count, value);
        } else {
            const double upper = power_of_two(unit + APART), lower = power_of_two(unit);
            const int64 over = k[1] >> APART, high = k[0] + over, low = k[1] - (over << APART);
            const double nearest = double(high);
            const double level[3] = {nearest * upper, double(high - int64(nearest)) * upper, double(low) * lower};
            return finished<MEAN>(sum_of(level), count, value);
        }
    }
    template <bool MEAN>
    static __device__ bool finished(const LevelSum& sum, uint32 count, V& value) {
        if constexpr (MEAN) return round_quotient(value, sum, double(count));
        return round_sum(value, sum);
    }
};

enum StreamNote { STREAM_UNSORTED, STREAM_LISTED, STREAM_UNFIT, STREAM_GROUPS, STREAM_NOTES };
constexpr uint32 MOST_READ_AGAIN = 1 << 16;  // rows of a listed group: with more, another strategy adds all rows

// What comes out, and what tiles leave to later launches.
template <class K, class V>
struct SortedGroups {
    K* keys;
    V* values;
    uint32* counts;
    Progress progress;
    uint64* parts;   // TilePart of each tile
    uint64* joined;  // what later tiles have of the group that is open at the end of each tile
    uint64* listed;  // three words a group: its number, its first row, its rows
    uint32* notes;
    uint32 most;  // as many groups may be listed
    uint32 room;  // as many groups may come out and, behind these, a tile's; there are more only where keys are not sorted

    __device__ void list(uint64 group, uint64 begin, uint64 rows) const {
        if (rows > MOST_READ_AGAIN) notes[STREAM_UNFIT] = 1;
        const uint32 place = atomicAdd(notes + STREAM_LISTED, 1u);
        if (place >= most) return;
        listed[3 * place] = group;
        listed[3 * place + 1] = begin;
        listed[3 * place + 2] = rows;
    }
};

// What a tile has of the group that is open at its beginning, and of the one that is open at its end.
template <int PLANES>
struct TilePart {
    static constexpr int WORDS = 2 * PLANES + 3, JOINED = 2 * PLANES + 2;
    enum Flag : uint64 { HEADS = 1, LEAD_OTHER = 2, LEAD_BAD = 4, OTHER = 8, BAD = 16 };  // OTHER: not all elements are −0
    uint64* words;

    __device__ uint64& lead(int plane) const { return words[plane]; }
    __device__ uint64& last(int plane) const { return words[PLANES + plane]; }
    __device__ uint64& before() const { return words[2 * PLANES]; }      // how many groups begin before the tile
    __device__ uint64& counts() const { return words[2 * PLANES + 1]; }  // rows of both, the latter's in the upper half
    __device__ uint64& flags() const { return words[2 * PLANES + 2]; }
};

template <class K, int PLANES, int READS, int THREADS>
struct StreamTile : HeadsOfTile<READS, THREADS> {
    using Heads = HeadsOfTile<READS, THREADS>;
    using Heads::EACH, Heads::SIZE, Heads::WARPS;
    K keys[SIZE];                   // of each head
    uint64 prefixes[PLANES][SIZE];  // of the thread's elements before each head
    uint64 bases[PLANES][THREADS];  // of the threads before
    uint64 of_warps[PLANES][WARPS], whole[PLANES];

    __device__ uint64 prefix(int plane, uint32 head, uint32 place) const {
        return prefixes[plane][head] + bases[plane][place / EACH];
    }
};

template <class V>
__device__ bool all_negative_zeros(const V* values, uint64 begin, uint64 end) {
    uint64 at = begin;
    while (at < end && bits_of(values[at]) == SIGN<V>) ++at;
    return at == end;
}

// `turned` is the highest bit of a signed key.
template <class K, class V, int PLANES, int READS, int THREADS, bool MEAN>
__device__ void add_stream(const K* keys, const V* values, uint64 count, K turned, int unit, const SortedGroups<K, V>& out, char* memory) {
    using Tile = StreamTile<K, PLANES, READS, THREADS>;
    using Part = TilePart<PLANES>;
    constexpr int EACH = Tile::EACH, SIZE = Tile::SIZE;
    Tile& tile = *reinterpret_cast<Tile*>(memory);
    const Planes<V, PLANES> planes(unit);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint64 number = blockIdx.x, start = number * SIZE;
    const uint32 valid = count - start < SIZE ? uint32(count - start) : SIZE, first = threadIdx.x * EACH;
    tile.clear();
    RowsOfThread<K, V, READS> own;
    own.read(keys, values, start, first, valid);
    own.find_heads(keys, start, first, valid, turned);
    if (own.unsorted) out.notes[STREAM_UNSORTED] = 1;
    uint32 all;
    const uint32 rank = tile.ranked(__popc(own.heads), all);
    if (warp == 0) out.progress.count(number, all);

    // The sums before each head.
    uint64 sums[PLANES] = {};
    uint32 place = rank;
    bool held = true;
#pragma unroll
    for (int n = 0; n < EACH; ++n) {
        if (own.heads >> n & 1) {
#pragma unroll
            for (int p = 0; p < PLANES; ++p) tile.prefixes[p][place] = sums[p];
            tile.keys[place] = own.key[n];
            tile.places[place] = uint16(first + n);
            ++place;
        }
        uint64 bits[PLANES];
        held = planes.split(own.x[n], bits) && held;
#pragma unroll
        for (int p = 0; p < PLANES; ++p) sums[p] += bits[p];
    }
    if (!held) {
#pragma unroll
        for (int n = 0; n < EACH; ++n) {
            uint64 bits[PLANES];
            if (!planes.split(own.x[n], bits)) tile.note_bad(rank + __popc(own.heads_to(n)));
        }
    }
    uint64 before[PLANES];
#pragma unroll
    for (int p = 0; p < PLANES; ++p) {
        uint64 inclusive = sums[p];
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            const uint64 other = __shfl_up_sync(~0u, inclusive, distance);
            if (lane >= distance) inclusive += other;
        }
        if (lane == 31) tile.of_warps[p][warp] = inclusive;
        before[p] = inclusive - sums[p];
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < PLANES; ++p) {
        for (int w = 0; w < warp; ++w) before[p] += tile.of_warps[p][w];
        tile.bases[p][threadIdx.x] = before[p];
        if (threadIdx.x == THREADS - 1) tile.whole[p] = before[p] + sums[p];
    }
    if (warp == 0) {
        const uint64 earlier = out.progress.before(number);
        if (lane == 0) tile.before = earlier;
    }
    __syncthreads();

    const uint32 earlier = uint32(tile.before);
    if (earlier > out.room) return;  // nothing of all this is used
    const Part part{out.parts + number * Part::WORDS};
    const bool any_bad = tile.any_bad;
    for (uint32 head = threadIdx.x; head < all; head += THREADS) {
        const uint32 from = tile.places[head];
        const bool open = head + 1 == all;
        const uint32 to = open ? SIZE : tile.places[head + 1], rows = (open ? valid : to) - from;
        int64 k[PLANES];
        bool zero = true;
#pragma unroll
        for (int p = 0; p < PLANES; ++p) {
            const uint64 end = open ? tile.whole[p] : tile.prefix(p, head + 1, to);
            k[p] = int64(end - tile.prefix(p, head, from) - planes.anchored(p, to - from));
            zero = zero && k[p] == 0;
        }
        const uint32 group = earlier + head;
        const uint64 begin = start + from;
        const bool bad = any_bad && tile.is_bad(head);
        out.keys[group] = tile.keys[head];
        if (open) {
#pragma unroll
            for (int p = 0; p < PLANES; ++p) part.last(p) = uint64(k[p]);
            uint64 flags = Part::HEADS;
            if (bad) flags |= Part::BAD;
            if (!zero || !all_negative_zeros(values, begin, begin + rows)) flags |= Part::OTHER;
            part.flags() = flags;  // the flags of the lead follow below
            part.counts() = uint64(rows) << 32;
            continue;
        }
        out.counts[group] = rows;
        V value;
        if (zero)
            set_bits(value, all_negative_zeros(values, begin, begin + rows) ? SIGN<V> : 0);
        if (bad || (!zero && !planes.template round<MEAN>(k, rows, value)))
            out.list(group, begin, rows);
        else
            out.values[group] = value;
    }
    __syncthreads();
    if (threadIdx.x) return;
    const uint32 to = all ? tile.places[0] : SIZE, rows = all ? to : valid;
    bool zero = true;
#pragma unroll
    for (int p = 0; p < PLANES; ++p) {
        const uint64 end = all ? tile.prefix(p, 0, to) : tile.whole[p];
        part.lead(p) = end - planes.anchored(p, to);
        zero = zero && part.lead(p) == 0;
    }
    uint64 flags = all ? part.flags() : 0;
    if (tile.lead_bad) flags |= Part::LEAD_BAD;
    if (rows && (!zero || !all_negative_zeros(values, start, start + rows))) flags |= Part::LEAD_OTHER;
    part.flags() = flags;
    part.counts() = (all ? part.counts() : 0) | rows;
    part.before() = earlier;
    if (start + valid == count) out.notes[STREAM_GROUPS] = uint32(earlier + all);
}
