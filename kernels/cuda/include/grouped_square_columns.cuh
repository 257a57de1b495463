// Sums of squares, alone or with values, of the columns of an array in C order. A thread reads vectors that lie a period of whole rows
// apart, so that each slot of them always has the same column (grouped_columns.cuh), and leaves what it has of each slot in memory.
// Another launch puts the parts of each column together and rounds them. Few
// long rows are cut into such parts, too.
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

// Puts together what threads have that are `apart` places from each other, one of which is `place` and below `places`. Afterwards
// the first `apart` threads have it. All threads of the block call this; `memory` has room for each.
template <bool VALUED, class T>
__device__ void gather(SquareParts<T>& mine, uint32 place, uint32 apart, uint32 places, char* memory) {
    static_assert(sizeof(SquareParts<T>) <= 64);  // of the launch's shared memory a thread
    SquareParts<T>* const all = reinterpret_cast<SquareParts<T>*>(memory);
    uint32 half = 1;
    while (2 * half * apart < places) half *= 2;
    for (; half; half /= 2) {
        const uint32 end = places < 2 * half * apart ? places : 2 * half * apart;
        if (place >= half * apart && place < end) all[place] = mine;
        __syncthreads();
        if (place < half * apart && place + half * apart < end) mine.include(all[place + half * apart]);
        __syncthreads();
    }
}

// In a narrow array threads whose places are `once` apart have the same columns, and a block leaves `once` parts of each slot;
// otherwise `once` is the period.
template <class T, bool VALUED, bool VECTORS, int FLIGHT>
__device__ void sum_square_columns(const T* data, const ColumnsOf& of, uint32 once, int bits, const PartsInMemory<T, VALUED>& parts,
                                   char* memory) {
    constexpr int S = Slots<T, VECTORS>::COUNT;
    const uint64 part = blockIdx.x / of.tiles;
    const uint64 place = uint64(blockIdx.x % of.tiles) * blockDim.x + threadIdx.x;
    uint64 at = part * of.periods * of.period + place, end = (part + 1) * of.periods * of.period;
    if (end > of.vectors) end = of.vectors;
    if (place >= of.period) end = at;
    SquareSums<T, VALUED> sums[S];
#pragma unroll 1
    for (; at < end; at += FLIGHT * of.period) {
        const ColumnTile<T, VECTORS, FLIGHT> read(data, at, of.period, end);
#pragma unroll
        for (int s = 0; s < S; ++s) {
            Column<T, FLIGHT> slot = read.slot(s);
            sums[s].add(slot, bits);
        }
    }
#pragma unroll
    for (int s = 0; s < S; ++s) {
        SquareParts<T> mine = sums[s].parts(bits);
        if (once < of.period) gather<VALUED>(mine, uint32(place), once, uint32(of.period), memory);
        if (place < once) parts.put((part * once + place) * S + s, mine);
    }
}

// The deviations of columns of two rows.
template <class T>
__device__ void half_distances(const T* data, uint64 width, const SpreadResults<T>& results) {
    const uint64 column = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (column >= width) return;
    const T a = data[column], b = data[column + width];
    T out;
    if (!half_distance(out, a, b)) {
        const bool nan = a != a || b != b, finite = a - a == 0 && b - b == 0;
        const bool marks = finite || (nan && results.omit_nan);
        if (marks) atomicAdd(results.marked, 1u);
        out = marks ? mark<T>() : nan_of<T>();
    }
    results.values[column] = out;
}

// Rows whose elements begin and end at multiples of 16 bytes, each in parts of a warp: what it has of a part is that of a column.
template <class T, bool VALUED, int FLIGHT>
__device__ void sum_square_parts(const T* data, const Spans& spans, int bits, const PartsInMemory<T, VALUED>& parts) {
    const uint64 span = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / 32, rows = spans.count / spans.parts;
    uint64 begin = 0, end = 0;
    if (span < spans.count) spans.bounds(span, begin, end);
    const SquareParts<T> sum = squares_of_span<T, VALUED, 32, true, FLIGHT>(data, begin, end, {bits, 5, 3});
    if (threadIdx.x % 32 == 0 && span < spans.count) parts.put(span % spans.parts * rows + span / spans.parts, sum);
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
