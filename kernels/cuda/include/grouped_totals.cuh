// Any exact sum of floats (exact_sums.cuh) for many values: blocks add up each value as they add up a whole array, to a total of
// its own.
#pragma once
#include "exact_sums.cuh"
#include "grouped_wide.cuh"

constexpr int TOTALS_FLIGHT = 4;  // reads of a thread at a time

// Part number `part` of `parts` parts of a value.
template <class S, class T, int THREADS>
__device__ void add_members(const T* data, const Members& of, uint64 value, uint32 part, uint32 parts, uint64* words,
                            char* memory) {
    uint64 begin, count;
    of.of(value, begin, count);
    if (of.stride == 1) {
        const Vectors<T> source(data + begin, count);
        const uint64 size = uint64(TOTALS_FLIGHT) * THREADS, tiles = (source.all + size - 1) / size;
        const uint64 from = tiles * part / parts, to = tiles * (part + 1) / parts;
        if (from == to) return;
        S sum(memory, Total{words});
#pragma unroll 1
        for (uint64 number = from; number < to; ++number) {
            auto tile = source.template tile<TOTALS_FLIGHT>(number);
            sum(tile);
        }
        sum.finish();
        return;
    }
    using Of = Tile<T, WIDE_FLIGHT>;
    const uint64 size = uint64(Of::SIZE) * THREADS, tiles = (count + size - 1) / size;
    const uint64 from = tiles * part / parts, to = tiles * (part + 1) / parts;
    if (from == to) return;
    S sum(memory, Total{words});
#pragma unroll 1
    for (uint64 number = from; number < to; ++number) {
        const uint64 first = number * size + threadIdx.x;
        Bits<T> bits[Of::SIZE];
#pragma unroll
        for (int k = 0; k < Of::SIZE; ++k)
            bits[k] = first + k * THREADS < count ? bits_of(data[begin + (first + k * THREADS) * of.stride]) : SIGN<T>;
        Of elements;
        memcpy(elements.vectors, bits, sizeof(bits));
        sum(elements);
    }
    sum.finish();
}
