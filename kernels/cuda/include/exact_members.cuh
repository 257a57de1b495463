// The elements of one value among many, added up by blocks as a whole array is (exact_sums.cuh): each block has a part of them.
#pragma once
#include "exact_total.cuh"
#include "pairs.cuh"

// Reads of 16 bytes of a thread at a time, of one array or of each of two.
constexpr int MEMBERS_FLIGHT = 4, PAIRS_FLIGHT = 2, STRIDED_FLIGHT = 2;

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

template <class T>
__device__ Vectors<T> vectors_of(const T* data, uint64 count) {
    return {data, count};
}
template <class T>
__device__ VectorPairs<T> vectors_of(const Pairs<T>& data, uint64 count) {
    return {data.x, data.y, count};
}

// Elements of which two neighbours are `stride` apart in memory: those from number `first` on, STEP numbers apart.
template <int STEP, class T>
__device__ Tile<T, STRIDED_FLIGHT> strided_tile(const T* data, uint64 first, uint64 count, uint64 stride, bool negative = true) {
    Tile<T, STRIDED_FLIGHT> elements;
    Bits<T> bits[elements.SIZE];
#pragma unroll
    for (int k = 0; k < elements.SIZE; ++k)
        bits[k] = first + k * STEP < count ? bits_of(data[(first + k * STEP) * stride]) : negative ? SIGN<T> : Bits<T>(0);
    memcpy(elements.vectors, bits, sizeof(bits));
    return elements;
}
template <int STEP, class T>
__device__ TilePair<T, STRIDED_FLIGHT> strided_tile(const Pairs<T>& data, uint64 first, uint64 count, uint64 stride) {
    return {strided_tile<STEP>(data.x, first, count, stride), strided_tile<STEP>(data.y, first, count, stride, false)};
}

// Adds part number `part` of `parts` of the `count` elements of type T from `data` on, `stride` apart, to a total. All threads of the
// block call this.
template <class Sum, int THREADS, int FLIGHT, class T, class Data>
__device__ void add_part(const Data& data, uint64 count, uint64 stride, uint32 part, uint32 parts, uint64* words, char* memory) {
    const auto source = vectors_of(data, stride == 1 ? count : 0);
    const uint64 all = stride == 1 ? source.all : count;
    const uint64 size = uint64(stride == 1 ? FLIGHT : Tile<T, STRIDED_FLIGHT>::SIZE) * THREADS;
    const uint64 tiles = (all + size - 1) / size, from = tiles * part / parts, to = tiles * (part + 1) / parts;
    if (from == to) return;
    Sum sum(memory, Total{words});
    if (stride == 1) {
        auto tile = source.template tile<FLIGHT>(from);
#pragma unroll 1
        for (uint64 number = from + 1;; ++number) {  // the next tile is read while one is added up
            auto next = tile;
            if (number < to) next = source.template tile<FLIGHT>(number);
            sum(tile);
            if (number >= to) break;
            tile = next;
        }
    } else {
#pragma unroll 1
        for (uint64 number = from; number < to; ++number) {
            auto elements = strided_tile<THREADS>(data, number * size + threadIdx.x, count, stride);
            sum(elements);
        }
    }
    sum.finish();
}

template <class Sum, int THREADS, class T>
__device__ void add_members(const T* data, uint64 count, uint64 stride, uint32 part, uint32 parts, uint64* words, char* memory) {
    add_part<Sum, THREADS, MEMBERS_FLIGHT, T>(data, count, stride, part, parts, words, memory);
}
// The products of two arrays that lie alike between boundaries of 16 bytes.
template <class Sum, int THREADS, class T>
__device__ void add_members(const Pairs<T>& data, uint64 count, uint64 stride, uint32 part, uint32 parts, uint64* words, char* memory) {
    add_part<Sum, THREADS, PAIRS_FLIGHT, T>(data, count, stride, part, parts, words, memory);
}

// The same for one of many values.
template <class Sum, int THREADS, class Data>
__device__ void add_members(const Data& data, const Members& of, uint64 value, uint32 part, uint32 parts, uint64* words,
                            char* memory) {
    uint64 begin, count;
    of.of(value, begin, count);
    add_members<Sum, THREADS>(data + begin, count, of.stride, part, parts, words, memory);
}
