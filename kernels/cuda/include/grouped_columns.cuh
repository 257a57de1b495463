// Neighbouring elements of neighbouring values: the columns of an array in C order.
//
// A thread reads vectors that lie a period apart. A period is a number of whole rows, so that each slot of the thread's vectors always
// has the same column. In a wide array each column has one thread. In a narrow array many threads of a block share a column, and add up
// their levels as doubles in shared memory, without a rounding. A block has some of the rows. If there are more rows, it stores its
// levels, and another launch adds those up: for each part of the rows they are an array of LEVELS rows of float64.
#pragma once
#include "grouped_rows.cuh"

constexpr int COLUMN_BITS = 17;  // of a column's rows in one block

// A thread reads this at a time: 16 bytes, or one element.
template <class T, bool VECTORS>
struct Slots {
    static constexpr int COUNT = VECTORS ? Vector<T>::size : 1;

    static __device__ Vector<T> load(const T* at) {
        if constexpr (VECTORS) return Vector<T>::load(at);
        Vector<T> read = zeros<T>(true);
        const Bits<T> bits = bits_of(*at);
        memcpy(read.words, &bits, sizeof(T));
        return read;
    }
};

struct ColumnsOf {
    uint64 vectors;        // of the whole array
    uint32 columns;
    uint64 period;         // in vectors
    uint32 tiles;          // blocks for one period
    uint64 periods;        // that a block has of each of its vectors
    uint64 rows;           // of the whole array
};

// The elements of one slot in the tile of a thread.
template <class T, int FLIGHT>
struct Column {
    static constexpr int SIZE = FLIGHT;
    T elements[FLIGHT];
    __device__ T operator[](int at) const { return elements[at]; }
    __device__ void make_zero(int at, bool negative) { set_bits(elements[at], negative ? uint64(SIGN<T>) : 0); }
};

template <class T, int FLIGHT>
__device__ Extent<T> extent_of(const Column<T, FLIGHT>& column) {
    Extent<T> found;
#pragma unroll
    for (int at = 0; at < FLIGHT; ++at) {
        const uint32 key = key_of(widen(column[at]));
        found.include({key, key - 1});
    }
    return found;
}

// What a thread reads at a time: FLIGHT vectors, a period of so many apart, from number `at` on. Behind the end there are −0.
template <class T, bool VECTORS, int FLIGHT>
struct ColumnTile {
    Vector<T> vectors[FLIGHT];

    ColumnTile() = default;
    __device__ ColumnTile(const T* data, uint64 at, uint64 period, uint64 end) {
        using Of = Slots<T, VECTORS>;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) vectors[k] = at + k * period < end ? Of::load(data + (at + k * period) * Of::COUNT) : zeros<T>(true);
    }
    // `number` must be known at compile time after unrolling.
    __device__ Column<T, FLIGHT> slot(int number) const {
        Column<T, FLIGHT> column;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) column.elements[k] = vectors[k][number];
        return column;
    }
};

constexpr int NO_EXPONENT = -1 << 20;

// With TOGETHER, `memory` holds an int for each column, and behind these (LEVELS + 1) doubles for each slot of a period.
template <class T, class Out, bool VECTORS, int FLIGHT, bool TOGETHER, bool PARTS>
__device__ void sum_columns(const T* data, const ColumnsOf& of, const Results<Out>& results, double* parts, uint32* lost,
                            char* memory) {
    constexpr int S = Slots<T, VECTORS>::COUNT, L = LEVELS<T>;
    using Sum = GroupSum<T, COLUMN_BITS>;
    const uint64 part = blockIdx.x / of.tiles;
    const uint64 place = uint64(blockIdx.x % of.tiles) * blockDim.x + threadIdx.x;
    const bool inside = place < of.period;
    uint64 at = part * of.periods * of.period + place, end = (part + 1) * of.periods * of.period;
    if (end > of.vectors) end = of.vectors;
    if (!inside) at = end;
    const uint32 first = uint32(place * S % of.columns);
    uint32 column[S];
#pragma unroll
    for (int s = 0; s < S; ++s) column[s] = (first + s) % of.columns;

    int* const tops = reinterpret_cast<int*>(memory);
    if constexpr (TOGETHER) {
        for (uint32 c = threadIdx.x; c < of.columns; c += blockDim.x) tops[c] = NO_EXPONENT;
        __syncthreads();
    }
    Sum sums[S];
    bool begun = !TOGETHER;
#pragma unroll 1
    do {
        const ColumnTile<T, VECTORS, FLIGHT> read(data, at, of.period, end);
        if (TOGETHER && !begun) {
#pragma unroll
            for (int s = 0; s < S; ++s) {
                int highest = NO_EXPONENT;
#pragma unroll
                for (int k = 0; k < FLIGHT; ++k) {
                    const uint32 key = key_of(widen(read.vectors[k][s]));
                    const int exponent = key == 0 || key >= uint32(KEY_LIMIT<T>) << KEY_SHIFT<T> ? NO_EXPONENT : exponent_of<T>(key);
                    highest = highest > exponent ? highest : exponent;
                }
                if (highest != NO_EXPONENT) atomicMax(tops + column[s], highest);
            }
            __syncthreads();
#pragma unroll
            for (int s = 0; s < S; ++s) sums[s].start(tops[column[s]] == NO_EXPONENT ? 0 : tops[column[s]]);
            begun = true;
        }
        if (at < end) {
#pragma unroll
            for (int s = 0; s < S; ++s) {
                Column<T, FLIGHT> slot = read.slot(s);
                Extent<T> extent = extent_of(slot);
                if (!extent.all_finite()) {
                    sums[s].extra += set_aside(slot);
                    extent = extent_of(slot);
                }
                if (!TOGETHER && !sums[s].started && !extent.all_zero()) sums[s].start(extent.highest());
                sums[s].add(slot, extent);
            }
        }
        at += FLIGHT * of.period;
    } while (at < end);

    if constexpr (TOGETHER) {
        const uint32 slots = uint32(of.period) * S;
        double* const shared = reinterpret_cast<double*>(memory + (of.columns + 1) / 2 * 8);
        __syncthreads();  // tops are no longer needed: they tell what is lost
        for (uint32 c = threadIdx.x; c < of.columns; c += blockDim.x) tops[c] = 0;
        __syncthreads();
        if (inside) {
#pragma unroll
            for (int s = 0; s < S; ++s) {
                double level[L];
                sums[s].levels(level);
#pragma unroll
                for (int k = 0; k < L; ++k) shared[k * slots + place * S + s] = level[k];
                shared[L * slots + place * S + s] = sums[s].extra;
                if (sums[s].lost) atomicMax(tops + column[s], 1);
            }
        }
        __syncthreads();
        for (uint32 rows = slots / of.columns; rows > 1;) {
            const uint32 kept = (rows + 1) / 2, added = (rows - kept) * of.columns;
            for (uint32 k = threadIdx.x; k < added; k += blockDim.x) {
#pragma unroll
                for (int level = 0; level <= L; ++level)
                    shared[level * slots + k] += shared[level * slots + kept * of.columns + k];
            }
            rows = kept;
            __syncthreads();
        }
        for (uint32 c = threadIdx.x; c < of.columns; c += blockDim.x) {
            double level[L];
#pragma unroll
            for (int k = 0; k < L; ++k) level[k] = shared[k * slots + c];
            const double extra = shared[L * slots + c];
            if constexpr (PARTS) {
                as_terms(level, extra);
                if (tops[c]) lost[c] = 1;
#pragma unroll
                for (int k = 0; k < L; ++k) parts[(part * L + k) * of.columns + c] = level[k];
            } else {
                results.put(c, level, extra, of.rows, tops[c] || (lost && lost[c]));
            }
        }
        return;
    }
    if (!inside) return;
#pragma unroll
    for (int s = 0; s < S; ++s) {
        double level[L];
        sums[s].levels(level);
        if constexpr (PARTS) {
            as_terms(level, sums[s].extra);
            if (sums[s].lost) lost[column[s]] = 1;
#pragma unroll
            for (int k = 0; k < L; ++k) parts[(part * L + k) * of.columns + column[s]] = level[k];
        } else {
            results.put(column[s], level, sums[s].extra, of.rows, sums[s].lost || (lost && lost[column[s]]));
        }
    }
}

// Columns of no more than FLIGHT rows: a thread holds the columns of one vector in its registers.
template <class T, class Out, int FLIGHT>
__device__ void sum_short_columns(const T* data, uint64 vectors, uint32 height, const Results<Out>& results) {
    constexpr int S = Vector<T>::size;
    const uint64 place = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    const bool inside = place < vectors;
    ColumnTile<T, true, FLIGHT> read;
#pragma unroll
    for (int k = 0; k < FLIGHT; ++k)
        read.vectors[k] = inside && k < height ? Vector<T>::load(data + (place + k * vectors) * S) : zeros<T>(true);
    Vector<Out> values;
    static_assert(sizeof(T) == sizeof(Out));
#pragma unroll
    for (int s = 0; s < S; ++s) {
        Column<T, FLIGHT> column = read.slot(s);
        const Out value = row_value<T, Out, 1>(column, height, inside, results);
        memcpy(values.words + s * int(sizeof(Out) / 4), &value, sizeof(Out));
    }
    if (inside) reinterpret_cast<uint4*>(results.values)[place] = {values.words[0], values.words[1], values.words[2], values.words[3]};
}
