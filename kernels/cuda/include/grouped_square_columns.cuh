// Sums of squares, alone or with values, of the columns of an array in C order. A thread reads vectors that lie a period of whole rows
// apart, so that each slot of them always has the same column (grouped_columns.cuh), and leaves what it has of each slot in memory.
// Another launch puts the parts of each column together and rounds them.
#pragma once
#include "grouped_columns.cuh"
#include "grouped_square_spans.cuh"

// What threads leave: `size` parts, of which number r has the column r modulo the number of columns.
template <class T, bool VALUED>
struct PartsInMemory {
    static constexpr int DOUBLES = 2 + (VALUED ? 2 : 0) + (sizeof(T) == 8 ? 2 : 0);
    static constexpr uint32 LOST = 1, IS_NAN = 2, IS_INFINITE = 4;
    double* doubles;
    uint32* words;
    uint64 size;

    __device__ void put(uint64 at, const SquareParts<T>& parts) const {
        double* to = doubles + at;
        const auto next = [&](double x) {
            *to = x;
            to += size;
        };
        next(parts.squares.upper);
        next(parts.squares.lower);
        if (VALUED) next(parts.values.upper), next(parts.values.lower);
        if (sizeof(T) == 8) next(parts.errors.upper), next(parts.errors.lower);
        words[at] = parts.extent.largest;
        words[at + size] = parts.extent.smallest;
        words[at + 2 * size] = (parts.lost ? LOST : 0) | (parts.nan ? IS_NAN : 0) | (parts.infinite ? IS_INFINITE : 0);
    }
    __device__ SquareParts<T> get(uint64 at) const {
        const double* from = doubles + at;
        const auto next = [&] {
            const double x = *from;
            from += size;
            return x;
        };
        SquareParts<T> parts;
        parts.squares.upper = next();
        parts.squares.lower = next();
        if (VALUED) parts.values.upper = next(), parts.values.lower = next();
        if (sizeof(T) == 8) parts.errors.upper = next(), parts.errors.lower = next();
        parts.extent = {words[at], words[at + size]};
        const uint32 flags = words[at + 2 * size];
        parts.lost = flags & LOST;
        parts.nan = flags & IS_NAN;
        parts.infinite = flags & IS_INFINITE;
        return parts;
    }
};

template <class T, bool VALUED, bool VECTORS, int FLIGHT>
__device__ void sum_square_columns(const T* data, const ColumnsOf& of, int bits, const PartsInMemory<T, VALUED>& parts) {
    constexpr int S = Slots<T, VECTORS>::COUNT;
    const uint64 part = blockIdx.x / of.tiles;
    const uint64 place = uint64(blockIdx.x % of.tiles) * blockDim.x + threadIdx.x;
    if (place >= of.period) return;
    uint64 at = part * of.periods * of.period + place, end = (part + 1) * of.periods * of.period;
    if (end > of.vectors) end = of.vectors;
    SquareSums<T, VALUED> sums[S];
#pragma unroll 1
    for (; at < end; at += FLIGHT * of.period) {
        Vector<T> read[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k)
            read[k] = at + k * of.period < end ? Slots<T, VECTORS>::load(data + (at + k * of.period) * S) : zeros<T>(true);
#pragma unroll
        for (int s = 0; s < S; ++s) {
            Column<T, FLIGHT> slot;
#pragma unroll
            for (int k = 0; k < FLIGHT; ++k) slot.elements[k] = read[k][s];
            sums[s].add(slot, bits);
        }
    }
#pragma unroll
    for (int s = 0; s < S; ++s) parts.put((part * of.period + place) * S + s, sums[s].parts(bits));
}

// LANES lanes put the parts of a column together.
template <class T, bool VALUED, int LANES>
__device__ void close_square_columns(const PartsInMemory<T, VALUED>& parts, uint64 width, uint64 height, const Counted& counted,
                                     const SpreadResults<T>& results) {
    const uint64 column = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
    SquareParts<T> sum;
    if (column < width)
#pragma unroll 2
        for (uint64 at = column + Together<LANES>::lane() * width; at < parts.size; at += LANES * width) sum.include(parts.get(at));
    __syncwarp();
    sum = SquaresTogether<LANES>::template sum<VALUED>(sum);
    if (Together<LANES>::lane() == 0 && column < width) results.template put<VALUED>(column, sum, counted, height);
}
