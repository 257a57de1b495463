// The elements of one value among many, added up by blocks as a whole array is (exact_sums.cuh): each block has a part of them.
#pragma once
#include "exact_tiles.cuh"
#include "exact_total.cuh"

constexpr int MEMBERS_FLIGHT = 4, STRIDED_FLIGHT = 2;  // reads of 16 bytes of a thread at a time

// Where the elements of value v lie: `count` of them from v · outer on, `stride` apart, or those between offsets[v] and
// offsets[v + 1]. Of rows of one length the last may be shorter, for there are `total` elements.
struct Members {
    const int64* offsets;
    uint64 outer, stride, count, total;

    __device__ void of(uint64 value, uint64& begin, uint64& members) const {
        if (offsets) {
            begin = offsets[value];
            members = offsets[value + 1] - begin;
            return;
        }
        begin = value * outer;
        members = stride == 1 && total - begin < count ? total - begin : count;
    }
};

// Adds part number `part` of `parts` of the `count` elements from `data` on, `stride` apart, to a total. All threads of the block
// call this.
template <class Sum, int THREADS, class T>
__device__ void add_members(const T* data, uint64 count, uint64 stride, uint32 part, uint32 parts, uint64* words, char* memory) {
    const Vectors<T> source(data, stride == 1 ? count : 0);
    using Strided = Tile<T, STRIDED_FLIGHT>;
    const uint64 all = stride == 1 ? source.all : count, size = uint64(stride == 1 ? MEMBERS_FLIGHT : Strided::SIZE) * THREADS;
    const uint64 tiles = (all + size - 1) / size, from = tiles * part / parts, to = tiles * (part + 1) / parts;
    if (from == to) return;
    Sum sum(memory, Total{words});
    if (stride == 1) {
        auto tile = source.template tile<MEMBERS_FLIGHT>(from);
#pragma unroll 1
        for (uint64 number = from + 1;; ++number) {  // the next tile is read while one is added up
            auto next = tile;
            if (number < to) next = source.template tile<MEMBERS_FLIGHT>(number);
            sum(tile);
            if (number >= to) break;
            tile = next;
        }
    } else {
#pragma unroll 1
        for (uint64 number = from; number < to; ++number) {
            const uint64 first = number * size + threadIdx.x;
            Bits<T> bits[Strided::SIZE];
#pragma unroll
            for (int k = 0; k < Strided::SIZE; ++k)
                bits[k] = first + k * THREADS < count ? bits_of(data[(first + k * THREADS) * stride]) : SIGN<T>;
            Strided elements;
            memcpy(elements.vectors, bits, sizeof(bits));
            sum(elements);
        }
    }
    sum.finish();
}

// The same for one of many values.
template <class Sum, int THREADS, class T>
__device__ void add_members(const T* data, const Members& of, uint64 value, uint32 part, uint32 parts, uint64* words,
                            char* memory) {
    uint64 begin, count;
    of.of(value, begin, count);
    add_members<Sum, THREADS>(data + begin, count, of.stride, part, parts, words, memory);
}
