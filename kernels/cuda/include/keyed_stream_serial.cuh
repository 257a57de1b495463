// Sorted keys of groups of few rows, sums of float32: a tile of keyed_stream.cuh whose threads add up row after row.
//
// Each thread has neighbouring rows and starts a sum anew at each head. An element is a multiple of 2^unit below 2^(unit + 49), so
// that sums of so few are doubles that no addition rounds. A group between two heads of a thread is rounded at once. Only the rows
// before a thread's first head and those from its last one on are turned into integers, which wrap around as they please, and meet
// those of the threads before. So a group costs a few instructions, where differences of prefix sums cost some dozens.
//
// A sum that starts with −0 has the sign of a sum of zeros, too.
#pragma once
#include "keyed_stream.cuh"

// The bits of 2^exponent as float32; 0 where it is too small, infinity where it is too large.
__device__ inline uint32 bits_of_power(int exponent) {
    if (exponent > 127) return 0x7f800000u;
    if (exponent >= -126) return uint32(exponent + 127) << 23;
    return exponent >= -149 ? 1u << (exponent + 149) : 0;
}

// Which float32 are multiples of 2^unit below 2^(unit + 49).
struct SerialWindow {
    static constexpr int BITS = 49;
    int unit;
    uint32 lowest, highest;  // in this range of bits without a sign all are

    __device__ explicit SerialWindow(int unit) : unit(unit), lowest(0), highest(bits_of_power(unit + BITS)) {
        if (unit + 23 >= -126) lowest = bits_of_power(unit + 23);
        if (highest == 0) highest = 1;  // zeros are held in any case
    }
    __device__ bool surely_holds(float32 x) const { return 2 * __float_as_uint(x) - 2 * lowest < 2 * (highest - lowest); }
    __device__ bool holds(float32 x) const {
        uint64 bits[1];
        return (__float_as_uint(x) & 0x7fffffffu) < highest && Planes<float32, 1>(unit).split(x, bits);
    }
};

template <int READS, int THREADS>
struct SerialTile : HeadsOfTile<READS, THREADS> {
    using Heads = HeadsOfTile<READS, THREADS>;
    using Heads::WARPS, Heads::heads;
    uint64 tails[WARPS];  // of the rows from the last head of a warp on, or of all its rows
    uint64 lead;

    // What the warps before a warp have of the group that is open at its beginning.
    __device__ uint64 open_before(int warp) const {
        uint64 sum = 0;
        for (int w = warp - 1; w >= 0; --w) {
            sum += tails[w];
            if (heads[w]) break;
        }
        return sum;
    }
};

// The groups of a tile, whose threads have its rows. Keys of heads and values of groups are put together in `head_keys` and `head_values`.
template <class K, int READS, int THREADS>
__device__ void add_serial_tile(SerialTile<READS, THREADS>& tile, K* head_keys, float32* head_values, const RowsOfThread<K, float32, READS>& own,
                                uint64 number, const float32* values, uint64 count, int unit, const SortedGroups<K, float32>& out) {
    using Tile = SerialTile<READS, THREADS>;
    using Part = TilePart<1>;
    constexpr int EACH = Tile::EACH, SIZE = Tile::SIZE, WARPS = Tile::WARPS;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint64 start = number * SIZE;
    const uint32 valid = count - start < SIZE ? uint32(count - start) : SIZE, first = threadIdx.x * EACH;
    if (own.unsorted) out.notes[STREAM_UNSORTED] = 1;
    const uint32 heads = own.heads, mine = __popc(heads);
    uint32 all;
    const uint32 rank = tile.ranked(mine, all);
    uint32 place = rank;
#pragma unroll
    for (int n = 0; n < EACH; ++n) {
        if (heads >> n & 1) {
            head_keys[place] = own.key[n];
            tile.places[place] = uint16(first + n);
            ++place;
        }
    }
    if (warp == 0) out.progress.count(number, all);

    const SerialWindow window(unit);
    double sum = -0.0, lead = -0.0;  // of the rows since the last head, and of those before the first one
    place = rank;
    const int first_head = heads ? 31 - __clz(int(heads & -heads)) : EACH;
    bool held = true;
#pragma unroll
    for (int n = 0; n < EACH; ++n) {
        if (n == first_head) lead = sum;
        if (heads >> n & 1) {
            head_values[place++] = float32(sum);
            sum = -0.0;
        }
        held = held && window.surely_holds(own.x[n]);
        sum += double(own.x[n]);
    }
    if (!held) {
#pragma unroll
        for (int n = 0; n < EACH; ++n) {
            if (!window.holds(own.x[n])) tile.note_bad(rank + __popc(own.heads_to(n)));
        }
    }
    const double scale = power_of_two(-unit);
    uint64 open = uint64(int64(sum * scale)), carried;
    const uint32 with = __ballot_sync(~0u, mine);
    if (with != ~0u) {
        const uint32 so_far = with & (2u << lane) - 1;
        const int begins = so_far ? 31 - __clz(int(so_far)) : 0;
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            const uint64 other = __shfl_up_sync(~0u, open, distance);
            if (lane >= begins + distance) open += other;
        }
    }
    carried = __shfl_up_sync(~0u, open, 1);
    if (lane == 31) tile.tails[warp] = open;
    __syncthreads();

    if (mine) {
        uint64 k = uint64(int64(lead * scale));
        if (lane) k += carried;
        if (!(with & ((1u << lane) - 1))) k += tile.open_before(warp);
        if (rank == 0) {
            tile.lead = k;
        } else {
            const int64 whole[1] = {int64(k)};
            float32 value;
            if (k == 0)
                set_bits(value, all_negative_zeros(values, start + tile.places[rank - 1], start + first + first_head) ? SIGN<float32> : 0);
            else
                Planes<float32, 1>(unit).template round<false>(whole, 0, value);
            head_values[rank] = value;
        }
    }
    if (warp == 0) {
        const uint64 earlier = out.progress.before(number);
        if (lane == 0) tile.before = earlier;
    }
    __syncthreads();

    const uint32 earlier = uint32(tile.before);
    if (earlier > out.room) return;  // nothing of all this is used
    const bool any_bad = tile.any_bad;
    K* const keys_out = out.keys + earlier;
    float32* const values_out = out.values + earlier;
    uint32* const counts_out = out.counts + earlier;
#pragma unroll 2
    for (uint32 head = threadIdx.x; head < all; head += THREADS) {
        keys_out[head] = head_keys[head];
        if (head + 1 == all) continue;
        const uint32 from = tile.places[head], size = tile.places[head + 1] - from;
        counts_out[head] = size;
        if (any_bad && tile.is_bad(head))
            out.list(earlier + head, start + from, size);
        else
            values_out[head] = head_values[head + 1];
    }
    if (threadIdx.x) return;
    const Part part{out.parts + number * Part::WORDS};
    const uint64 last = tile.open_before(WARPS);
    const uint32 to = all ? tile.places[0] : valid;
    const uint64 leading = all ? tile.lead : last;
    uint64 flags = 0;
    if (tile.lead_bad) flags |= Part::LEAD_BAD;
    if (to && (leading || !all_negative_zeros(values, start, start + to))) flags |= Part::LEAD_OTHER;
    uint32 size = 0;
    if (all) {
        const uint32 from = tile.places[all - 1];
        size = valid - from;
        flags |= Part::HEADS;
        if (tile.is_bad(all - 1)) flags |= Part::BAD;
        if (last || !all_negative_zeros(values, start + from, start + valid)) flags |= Part::OTHER;
        part.last(0) = last;
    }
    part.lead(0) = leading;
    part.flags() = flags;
    part.counts() = uint64(size) << 32 | to;
    part.before() = earlier;
    if (start + valid == count) out.notes[STREAM_GROUPS] = uint32(earlier + all);
}

// As add_stream.
template <class K, int READS, int THREADS>
__device__ void add_serial_stream(const K* keys, const float32* values, uint64 count, K turned, int unit,
                                  const SortedGroups<K, float32>& out, char* memory) {
    using Tile = SerialTile<READS, THREADS>;
    Tile& tile = *reinterpret_cast<Tile*>(memory);
    K* const head_keys = reinterpret_cast<K*>(memory + sizeof(Tile));
    const uint64 start = blockIdx.x * uint64(Tile::SIZE);
    const uint32 valid = count - start < Tile::SIZE ? uint32(count - start) : Tile::SIZE, first = threadIdx.x * Tile::EACH;
    tile.clear();
    RowsOfThread<K, float32, READS> own;
    own.read(keys, values, start, first, valid);
    own.find_heads(keys, start, first, valid, turned);
    add_serial_tile(tile, head_keys, reinterpret_cast<float32*>(head_keys + Tile::SIZE), own, blockIdx.x, values, count, unit, out);
}
