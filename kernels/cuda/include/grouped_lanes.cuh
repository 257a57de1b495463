// What all kernels of many values share: marks, lanes that have one value together, and spans of neighbouring elements.
//
// A value that a launch does not round is marked in the result (MARK, a NaN with bits of its own) and counted. Another launch then
// adds its elements up as a whole array, whatever their exponents are (grouped_states.cu, reduced.cu).
#pragma once
#include "exact_span.cuh"
#include "pairs.cuh"
#include "vector.cuh"

template <class Out>
__device__ Out mark() {
    Out out;
    set_bits(out, sizeof(Out) == 8 ? 0x7ff8'6d61'726b'6564ull : 0x7fc6'6d6bull);
    return out;
}
template <class Out>
__device__ Out nan_of() {
    Out out;
    set_bits(out, sizeof(Out) == 8 ? 0x7ff8'0000'0000'0000ull : 0x7fc0'0000ull);
    return out;
}

__device__ constexpr int places_of(int size) { return size <= 1 ? 0 : 1 + places_of((size + 1) / 2); }

// The sum of elements of float32 in a double is exact while their exponents and their number span so little.
template <class T>
__device__ bool sums_plainly(const Extent<T>& extent, int places) {
    return sizeof(T) == 4 && extent.highest() - extent.lowest() + places <= 29;
}

template <class Tile>
__device__ double plain_sum(const Tile& tile) {
    double sum = -0.0;
#pragma unroll
    for (int at = 0; at < tile.SIZE; ++at) sum += double(widen(tile[at]));
    return sum;
}

// LANES neighbouring lanes that have one value together. All lanes of a warp call these at the same time.
template <int LANES>
struct Together {
    static __device__ int lane() { return int(threadIdx.x % LANES); }

    template <class T>
    static __device__ Extent<T> extent(Extent<T> mine) {
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2)
            mine.include({__shfl_xor_sync(~0u, mine.largest, distance), __shfl_xor_sync(~0u, mine.smallest, distance)});
        return mine;
    }
    static __device__ double sum(double mine) {
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2) mine += __shfl_xor_sync(~0u, mine, distance);
        return mine;
    }
    static __device__ uint32 flags(uint32 mine) {
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2) mine |= __shfl_xor_sync(~0u, mine, distance);
        return mine;
    }
};

// A span is what some lanes add up. With `offsets`, a span has the elements between two neighbouring offsets. Without, rows of `length`
// elements are cut into `parts` spans of `part` elements each.
struct Spans {
    const int64* offsets;
    uint64 count;  // of spans, parts counted
    uint64 total;  // elements, where there are no offsets: the last row may be shorter
    uint64 length, part;
    uint64 longest;  // a longer span is marked
    uint32 parts;

    __device__ void bounds(uint64 span, uint64& begin, uint64& end) const {
        if (offsets) {
            begin = offsets[span];
            end = offsets[span + 1];
            return;
        }
        const uint64 row = parts > 1 ? span / parts : span, within = parts > 1 ? (span - row * parts) * part : 0;
        const uint64 stop = row * length + length < total ? row * length + length : total;
        begin = row * length + within;
        end = begin + part < stop ? begin + part : stop;
        if (begin > end) begin = end;
    }
};

// What a lane reads of a span that LANES lanes have together, from its own place `at` on; behind the end there are −0, or +0. With VECTORS,
// spans begin and end at multiples of 16 bytes, and a lane reads 16 bytes at a time. Otherwise it reads single elements, as many as a
// tile has.
template <class T, int LANES, bool VECTORS, int FLIGHT>
__device__ Tile<T, FLIGHT> tile_of_span(const T* data, uint64 at, uint64 end, bool negative = true) {
    Tile<T, FLIGHT> tile;
    if constexpr (VECTORS) {
        constexpr int WIDTH = Vector<T>::size;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) {
            const T* const from = data + at + k * LANES * WIDTH;
            tile.vectors[k] = at + k * LANES * WIDTH >= end ? zeros<T>(negative) : LANES == 1 ? Vector<T>::load_kept(from) : Vector<T>::load(from);
        }
    } else {
        Bits<T> bits[Tile<T, FLIGHT>::SIZE];
#pragma unroll
        for (int k = 0; k < tile.SIZE; ++k) bits[k] = at + k * LANES < end ? bits_of(data[at + k * LANES]) : negative ? SIGN<T> : Bits<T>(0);
        memcpy(tile.vectors, bits, sizeof(bits));
    }
    return tile;
}
template <class T, int LANES, bool VECTORS, int FLIGHT>
__device__ Both<Tile<T, FLIGHT>> tile_of_span(const Pairs<T>& data, uint64 at, uint64 end) {
    return {tile_of_span<T, LANES, VECTORS, FLIGHT>(data.x, at, end), tile_of_span<T, LANES, VECTORS, FLIGHT>(data.y, at, end, false)};
}
