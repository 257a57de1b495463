// Sorted keys of groups of few rows by blocks that stay: each takes one tile after another, as keyed_stream_serial.cuh does, and the rows of
// its next tile are on their way to shared memory meanwhile. Where the rows of a tile were, its groups are put together.
#pragma once
#include "asynchronous.cuh"
#include "keyed_stream_serial.cuh"

// The rows of a whole tile. Pieces of 16 bytes lie so that the 8 lanes that read at a time meet no bank of the memory twice.
template <class K, int READS, int THREADS>
struct RowsOfTile {
    static constexpr int SIZE = 4 * READS * THREADS;
    static_assert(READS == 1 || READS == 2 || READS == 4);
    K keys[SIZE];
    float32 values[SIZE];

    // Pieces of a thread.
    template <class T>
    static constexpr uint32 PIECES = READS * sizeof(T) / 4;

    template <class T>
    static __device__ uint32 place(uint32 thread, uint32 piece) {
        constexpr uint32 P = PIECES<T>, TOGETHER = P < 8 ? 8 / P : 1;  // so many threads have their pieces in 128 bytes
        return thread * P + (piece ^ (thread / TOGETHER & (P - 1)));
    }
    // A warp brings what its lanes will take, neighbouring pieces at a time.
    template <class T>
    static __device__ void bring(T* to, const T* from) {
        constexpr uint32 P = PIECES<T>;
        const uint32 lane = threadIdx.x % 32, first = threadIdx.x - lane;
#pragma unroll
        for (uint32 k = 0; k < P; ++k) {
            const uint32 piece = k * 32 + lane;
            copy_later(reinterpret_cast<uint4*>(to) + place<T>(first + piece / P, piece % P), reinterpret_cast<const uint4*>(from) + first * P + piece);
        }
    }
    template <class T>
    static __device__ void take(T* out, const T* from) {
#pragma unroll
        for (uint32 k = 0; k < PIECES<T>; ++k) {
            const uint4 v = reinterpret_cast<const uint4*>(from)[place<T>(threadIdx.x, k)];
            memcpy(out + 16 / sizeof(T) * k, &v, 16);
        }
    }
};

template <class K, int READS, int THREADS>
struct KeptTiles {
    RowsOfTile<K, READS, THREADS> rows[2];
    SerialTile<READS, THREADS> tile;
};

// All blocks of the grid must run at the same time: a tile waits for those before it.
template <class K, int READS, int THREADS>
__device__ void add_kept_stream(const K* keys, const float32* values, uint64 count, K turned, int unit, const SortedGroups<K, float32>& out,
                                char* memory) {
    using Tile = SerialTile<READS, THREADS>;
    using Rows = RowsOfTile<K, READS, THREADS>;
    auto& kept = *reinterpret_cast<KeptTiles<K, READS, THREADS>*>(memory);
    const uint64 whole = count / Tile::SIZE, tiles = (count + Tile::SIZE - 1) / Tile::SIZE;
    const uint32 first = threadIdx.x * Tile::EACH;
    const auto bring = [&](uint64 number, Rows& to) {
        if (number < whole) {
            Rows::bring(to.keys, keys + number * Tile::SIZE);
            Rows::bring(to.values, values + number * Tile::SIZE);
        }
        end_group();
    };
    bring(blockIdx.x, kept.rows[0]);
    int turn = 0;
#pragma unroll 1
    for (uint64 number = blockIdx.x; number < tiles; number += gridDim.x, turn ^= 1) {
        Rows& here = kept.rows[turn];
        __syncthreads();  // the groups of the tile before are written
        bring(number + gridDim.x, kept.rows[turn ^ 1]);
        const uint64 start = number * Tile::SIZE;
        const uint32 valid = count - start < Tile::SIZE ? uint32(count - start) : Tile::SIZE;
        kept.tile.clear();
        RowsOfThread<K, float32, READS> own;
        await_groups<1>();
        __syncwarp();
        if (number < whole) {
            Rows::take(own.key, here.keys);
            Rows::take(own.x, here.values);
        } else {
            own.read(keys, values, start, first, valid);
        }
        own.find_heads(keys, start, first, valid, turned);
        add_serial_tile(kept.tile, here.keys, here.values, own, number, values, count, unit, out);
    }
}
