// What the tiles of a stream leave to later launches: groups that lie in several tiles, and groups that are read again.
#pragma once
#include "keyed_stream.cuh"

// Adds what each tile has of the group that is open at its beginning to the tile in which that group begins.
template <int PLANES>
__device__ void join_parts(uint64* parts, uint64* joined, const uint32* notes, uint32 tiles) {
    using Part = TilePart<PLANES>;
    const uint32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= tiles || number == 0 || notes[STREAM_UNSORTED]) return;
    const auto part_of = [&](uint32 at) { return Part{parts + uint64(at) * Part::WORDS}; };
    const Part part = part_of(number);
    const uint32 rows = uint32(part.counts());
    if (rows == 0) return;
    uint32 low = 0, high = number;  // the group begins in the tile before the first that has as many groups before it
    if (part_of(number - 1).flags() & Part::HEADS) low = high;
    while (low < high) {
        const uint32 middle = (low + high) / 2;
        if (part_of(middle).before() < part.before())
            low = middle + 1;
        else
            high = middle;
    }
    uint64* const to = joined + uint64(low - 1) * Part::JOINED;
#pragma unroll
    for (int p = 0; p < PLANES; ++p) {
        const int64 k = int64(part.lead(p));
        atomicAdd(to + 2 * p, uint64(uint32(k)));
        atomicAdd(to + 2 * p + 1, uint64(k >> 32));
    }
    atomicAdd(to + 2 * PLANES, uint64(rows));
    atomicOr(to + 2 * PLANES + 1, part.flags() & (Part::LEAD_OTHER | Part::LEAD_BAD));
}

// The last group that begins in each tile.
template <class K, class V, int PLANES, bool MEAN>
__device__ void finish_parts(int unit, uint32 tiles, uint32 size, uint64 count, const SortedGroups<K, V>& out) {
    using Part = TilePart<PLANES>;
    const uint32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= tiles || out.notes[STREAM_UNSORTED]) return;
    const Part part{out.parts + uint64(number) * Part::WORDS};
    const uint64 flags = part.flags();
    if (!(flags & Part::HEADS)) return;
    const uint64* const more = out.joined + uint64(number) * Part::JOINED;
    const uint64 end = uint64(number + 1) * size < count ? uint64(number + 1) * size : count;
    const uint64 mine = part.counts() >> 32, rows = mine + more[2 * PLANES];
    const uint64 group = number + 1 < tiles ? Part{out.parts + uint64(number + 1) * Part::WORDS}.before() - 1 : out.notes[STREAM_GROUPS] - 1;
    out.counts[group] = uint32(rows);
    if ((flags & Part::BAD) || (more[2 * PLANES + 1] & Part::LEAD_BAD)) {
        out.list(group, end - mine, rows);
        return;
    }
    int128 sums[PLANES];
#pragma unroll
    for (int p = 0; p < PLANES; ++p)
        sums[p] = int128(int64(part.last(p))) + int128(more[2 * p]) + (int128(int64(more[2 * p + 1])) << 32);
    const Rounding found = rounding_of(sums, Planes<V, PLANES>::APART, unit, MEAN ? uint32(rows) : 1);
    const double value = rounded_to<V>(found);
    const bool other = (flags & Part::OTHER) || (more[2 * PLANES + 1] & Part::LEAD_OTHER);
    out.values[group] = V(found.negative || (found.number == 0 && !found.sticky && !other) ? -value : value);
}

// Listed groups are read again, each by a warp. `totals` has room for each.
template <class K, class V, bool MEAN>
__device__ void read_again(const V* values, bool omit_nan, uint64* totals, const SortedGroups<K, V>& out) {
    const uint32 listed = out.notes[STREAM_LISTED];
    if (listed > out.most || out.notes[STREAM_UNFIT] || out.notes[STREAM_UNSORTED]) return;  // all rows are added anew
    const uint32 lane = threadIdx.x % 32, step = gridDim.x * blockDim.x / 32;
    for (uint32 at = (blockIdx.x * blockDim.x + threadIdx.x) / 32; at < listed; at += step) {
        uint64* const words = totals + uint64(at) * Total::OF_VALUES;
        for (uint32 k = lane; k < Total::OF_VALUES; k += 32) words[k] = 0;
        __threadfence();
        __syncwarp();
        const uint64 group = out.listed[3 * at], begin = out.listed[3 * at + 1], rows = out.listed[3 * at + 2];
        for (uint64 row = lane; row < rows; row += 32) {
            const V x = values[begin + row];
            const double whole = widen(x);
            if (bits_of(x) != SIGN<V>) atomicOr(words + Total::FLAGS + 3, uint64(1));
            if (is_nan(whole)) {
                if (omit_nan) out.notes[STREAM_UNFIT] = 1;
                atomicOr(words + Total::FLAGS, uint64(1));
            } else if (fabs(whole) == __longlong_as_double(0x7ff0000000000000ll)) {
                atomicOr(words + Total::FLAGS + (whole > 0 ? 1 : 2), uint64(1));
            } else if (whole != 0) {
                const Significand s(whole);
                Total{words}.add(s.negative ? -int128(s.magnitude) : int128(s.magnitude), int(s.position));
            }
        }
        __threadfence();
        __syncwarp();
        if (lane == 0) out.values[group] = round_total<V>(words, MEAN ? rows : 0, false);
    }
}
