// Neighbouring elements of one value each: rows of one length, and spans of any.
#pragma once
#include "grouped_window.cuh"
#include "vector.cuh"

// The rows of a launch have `length` elements each. Every row begins and ends at an address that is a multiple of 16.
template <class T>
struct RowsOf {
    const T* data;
    uint64 rows;
    uint32 length;
};

constexpr int SHORT_BITS = 11;  // of a row's length

// The value of one row, which LANES lanes hold in their registers. The first lane gets it, if it is `inside`.
template <class T, class Out, int LANES, class Tile>
__device__ __forceinline__ Out row_value(Tile& tile, uint32 length, bool inside, const Results<Out>& results) {
    using Lanes = Together<LANES>;
    using W = GroupWindow<T, SHORT_BITS>;
    double extra = -0.0;
    Extent<T> mine = extent_of(tile);
    if (!__all_sync(~0u, mine.all_finite())) {
        if (!mine.all_finite()) {
            extra = set_aside(tile);
            mine = extent_of(tile);
        }
        extra = Lanes::sum(extra);
    }
    const Extent<T> extent = Lanes::extent(mine);
    const int places = 32 - __clz(int(length - 1));
    const bool plain = extent.all_zero() || sums_plainly(extent, places);
    double level[LEVELS<T>] = {};
    bool lost = false;
    if (__all_sync(~0u, plain)) {
        level[0] = Lanes::sum(plain_sum(tile));
        if (level[0] == 0) extra += level[0];  // its sign
    } else {
        W window;
        window.start(W::unit_for(extent.all_zero() ? 0 : extent.highest()));
        lost = !extent.all_zero() && !W::range(window.unit).holds(extent.range());
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) window.add(widen(tile[at]));
#pragma unroll
        for (int k = 0; k < LEVELS<T>; ++k)
            level[k] = Lanes::sum(k < LEVELS<T> - 1 ? window.total[k] - W::bias(window.unit, k) : window.total[k]);
        if (!__all_sync(~0u, !extent.all_zero())) {
            const double zero = Lanes::sum(plain_sum(tile));
            if (extent.all_zero()) extra += zero;
        }
        if (!extent.all_zero()) extra += 0.0;
    }
    return Lanes::lane() == 0 && inside ? results.finished(level, extra, length, lost) : Out(0);
}

// Each group of LANES lanes takes ROWS rows, which it reads before it uses the first. Lane l reads the vectors l, l + LANES, …
// of a row.
template <class T, class Out, int LANES, int ROWS, int FLIGHT>
__device__ void sum_rows(const RowsOf<T>& of, const Results<Out>& results) {
    constexpr int N = Vector<T>::size;
    const uint32 vectors = of.length / N, groups = blockDim.x / LANES;
    const uint64 first = uint64(blockIdx.x) * groups * ROWS + threadIdx.x / LANES;
    Tile<T, FLIGHT> tiles[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const uint64 row = first + r * groups;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) {
            const uint32 at = Together<LANES>::lane() + k * LANES;
            tiles[r].vectors[k] = row < of.rows && at < vectors ? Vector<T>::load(of.data + row * of.length + at * N)
                                                                : zeros<T>(true);
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const uint64 row = first + r * groups;
        const Out value = row_value<T, Out, LANES>(tiles[r], of.length, row < of.rows, results);
        if (Together<LANES>::lane() == 0 && row < of.rows) results.values[row] = value;
    }
}

// Rows of two elements of float32, two rows a vector. Their sum and its error are two doubles whatever the elements are.
template <int FLIGHT>
__device__ void sum_pairs(const float32* data, uint64 rows, const Results<float32>& results) {
    const uint64 vectors = rows / 2, first = uint64(blockIdx.x) * blockDim.x * FLIGHT + threadIdx.x;
    Vector<float32> read[FLIGHT];
#pragma unroll
    for (int k = 0; k < FLIGHT; ++k)
        if (first + k * blockDim.x < vectors) read[k] = Vector<float32>::load(data + (first + k * blockDim.x) * 4);
#pragma unroll
    for (int k = 0; k < FLIGHT; ++k) {
        const uint64 at = first + k * blockDim.x;
        if (at >= vectors) return;
        float32 sums[2];
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const double a = read[k][2 * row], b = read[k][2 * row + 1];
            DoublePair sum = two_sum(a, b);
            if (!(fabs(sum.high) < 0x1p1000)) sum.low = 0;  // infinite or NaN
            const double half = results.divisor ? 0.5 : 1;
            sums[row] = float(to_odd({sum.high * half, sum.low * half}));
            if (sum.high != sum.high) {
                sums[row] = results.omit_nan ? mark<float32>() : nan_of<float32>();
                if (results.omit_nan) atomicAdd(results.marked, 1u);
            }
        }
        reinterpret_cast<float2*>(results.values)[at] = {sums[0], sums[1]};
    }
    // The last of an odd number of rows is another launch's.
}

// A span is what some lanes add up. With `offsets`, a span has the elements between two neighbouring offsets. Without, rows of `length`
// elements are cut into `parts` spans of `part` elements each.
struct Spans {
    const int64* offsets;
    uint64 count;  // of spans, parts counted
    uint64 total;  // elements, where there are no offsets: the last row may be shorter
    uint64 length, part;
    uint64 longest;  // a longer span is left to wide_sums
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

constexpr int SPAN_BITS = 17;  // of a span's length

// What a lane reads of a span that LANES lanes have together, from its own place `at` on; behind the end there are −0. With VECTORS,
// spans begin and end at multiples of 16 bytes, and a lane reads 16 bytes at a time. Otherwise it reads single elements, as many as a
// tile has.
template <class T, int LANES, bool VECTORS, int FLIGHT>
__device__ Tile<T, FLIGHT> tile_of_span(const T* data, uint64 at, uint64 end) {
    Tile<T, FLIGHT> tile;
    if constexpr (VECTORS) {
        constexpr int WIDTH = Vector<T>::size;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) {
            const T* const from = data + at + k * LANES * WIDTH;
            tile.vectors[k] = at + k * LANES * WIDTH >= end ? zeros<T>(true) : LANES == 1 ? Vector<T>::load_kept(from) : Vector<T>::load(from);
        }
    } else {
        Bits<T> bits[Tile<T, FLIGHT>::SIZE];
#pragma unroll
        for (int k = 0; k < tile.SIZE; ++k) bits[k] = at + k * LANES < end ? bits_of(data[at + k * LANES]) : SIGN<T>;
        memcpy(tile.vectors, bits, sizeof(bits));
    }
    return tile;
}

// Each group of LANES lanes takes a span.
template <class T, int LANES, bool VECTORS, int FLIGHT>
__device__ void add_span(GroupSum<T, SPAN_BITS>& sum, const T* data, uint64 begin, uint64 end) {
    using Lanes = Together<LANES>;
    constexpr int WIDTH = VECTORS ? Vector<T>::size : 1;
    uint64 at = begin + uint64(Lanes::lane()) * WIDTH;
#pragma unroll 1
    for (uint64 from = begin; !__all_sync(~0u, from >= end);
         from += uint64(Tile<T, FLIGHT>::SIZE) * LANES, at += uint64(Tile<T, FLIGHT>::SIZE) * LANES) {
        Tile<T, FLIGHT> tile = tile_of_span<T, LANES, VECTORS, FLIGHT>(data, at, end);
        Extent<T> extent = extent_of(tile);
        if (!extent.all_finite()) {
            sum.extra += set_aside(tile);
            extent = extent_of(tile);
        }
        if (!__all_sync(~0u, sum.started || from >= end)) {
            const Extent<T> all = Lanes::extent(extent);
            if (!sum.started && !all.all_zero()) sum.start(all.highest());
        }
        if (at < end) sum.add(tile, extent);
    }
}

// Adds up one span by a group of lanes, or none. With PARTS each span is a part of a row, whose LEVELS doubles are stored; lost[row] says
// that a window did not hold some element. Otherwise the span's value is stored.
template <class T, class Out, int LANES, bool VECTORS, int FLIGHT, bool PARTS>
__device__ void sum_span(const T* data, const Spans& spans, uint64 span, bool is_one, const Results<Out>& results,
                         double* parts, uint32* lost) {
    using Lanes = Together<LANES>;
    uint64 begin = 0, end = 0;
    if (is_one) spans.bounds(span, begin, end);
    GroupSum<T, SPAN_BITS> sum;
    const uint64 count = end - begin;
    if (count > spans.longest) {
        end = begin;
        sum.lost = true;
    }
    add_span<T, LANES, VECTORS, FLIGHT>(sum, data, begin, end);
    double level[LEVELS<T>];
    sum.levels(level);
#pragma unroll
    for (int k = 0; k < LEVELS<T>; ++k) level[k] = Lanes::sum(level[k]);
    const double extra = Lanes::sum(sum.extra);
    const bool any_lost = Lanes::any(sum.lost);
    if (Lanes::lane() != 0 || !is_one) return;
    if constexpr (PARTS) {
        as_terms(level, extra);
        if (any_lost) lost[span / spans.parts] = 1;
#pragma unroll
        for (int k = 0; k < LEVELS<T>; ++k) parts[span * LEVELS<T> + k] = level[k];
    } else {
        results.put(span, level, extra, count, any_lost || (lost && lost[span]));
    }
}

template <class T, class Out, int LANES, bool VECTORS, int FLIGHT, bool PARTS>
__device__ void sum_spans(const T* data, const Spans& spans, const Results<Out>& results, double* parts, uint32* lost) {
    const uint64 span = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
    sum_span<T, Out, LANES, VECTORS, FLIGHT, PARTS>(data, spans, span, span < spans.count, results, parts, lost);
}
