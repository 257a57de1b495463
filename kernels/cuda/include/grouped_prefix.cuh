// Short spans of float32: the sum of a span is the difference of two prefix sums, which are exact because they are integers.
//
// A block takes neighbouring spans, whose elements it reads together, however long each span is. If the exponents of all of
// them span at most 26, every element is a whole number of units, at most 2^50, and so is read off the bits of its sum with the
// anchor 1.5 · 2^52 units (docs/exactness.md, the anchored addition). Prefix sums of these bits are taken modulo 2^64; the
// difference of two, less as many anchors as there are elements between, is below 2^50 · 2^12 in magnitude and so exact.
// Otherwise, where there is an infinity, a NaN or a −0, and where the spans have too many elements, they are added up by the
// lanes of warps as other spans are.
#pragma once
#include "grouped_rows.cuh"

constexpr int PREFIX_MOST = 1 << 12;  // elements of a block

// k units of 2^unit, rounded once, or their quotient.
__device__ inline void put_units(const Results<float32>& results, uint64 at, int64 k, int unit, uint64 count) {
    const double scale = __longlong_as_double(int64(unit + 1023) << 52);
    if (results.divisor == 0 || k == 0) {  // a small sum is a multiple of the least float32, and not rounded at all
        results.values[at] = float(double(float(k)) * scale);
        return;
    }
    const double level[2] = {double(k >> 32) * 0x1p32 * scale, double(uint32(k)) * scale};
    results.put(at, level, 0.0, count, false);
}

// `memory`: READS · 4 + READS words of 64 bits for each thread, 64 more, and half a word for each span.
template <int READS, int LANES, int FLIGHT>
__device__ void sum_short_spans(const float32* data, const Spans& spans, uint32 each, const Results<float32>& results,
                                char* memory) {
    constexpr uint32 OF_WARP = READS * 128;  // elements
    const uint64 first = uint64(blockIdx.x) * each, last = first + each < spans.count ? first + each : spans.count;
    const int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint64* const sums = reinterpret_cast<uint64*>(memory);    // prefix sums in each vector
    uint64* const vectors = sums + READS * 4 * blockDim.x;     // of the vectors before in the same warp
    uint64* const bases = vectors + READS * blockDim.x;        // of the warps before
    uint32* const found = reinterpret_cast<uint32*>(bases + 32);  // extents of warps
    uint32* const edges = found + 64;                          // where spans begin
    uint64 begin, end, unused;
    spans.bounds(first, begin, unused);
    spans.bounds(last - 1, unused, end);
    const uint64 start = begin / 4 * 4;
    const bool fits = end - start <= uint64(OF_WARP) * warps;
    Vector<float32> read[READS];
    Extent<float32> extent;
    int least = 0;  // as integers −0 is the least of all bits
    if (fits) {
#pragma unroll
        for (int r = 0; r < READS; ++r) {
            const uint64 at = start + (warp * READS + r) * 128 + lane * 4;
            read[r] = zeros<float32>(false);
            if (at >= begin && at + 4 <= end) {
                read[r] = Vector<float32>::load(data + at);
            } else {
#pragma unroll
                for (int k = 0; k < 4; ++k)
                    if (at + k >= begin && at + k < end) read[r].words[k] = bits_of(data[at + k]);
            }
        }
        for (uint32 k = threadIdx.x; k < last - first; k += blockDim.x) {
            uint64 from;
            spans.bounds(first + k, from, unused);
            edges[k] = uint32(from - start);
        }
        if (threadIdx.x == 0) edges[last - first] = uint32(end - start);
#pragma unroll
        for (int r = 0; r < READS; ++r)
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const uint32 key = key_of(read[r][k]);
                extent.include({key, key - 1});
                least = least < int(read[r].words[k]) ? least : int(read[r].words[k]);
            }
    }
    if (uint32(least) == SIGN<float32>) extent.largest = ~0u;  // as if it were NaN
    extent = extent.of_warp();
    if (lane == 0) {
        found[2 * warp] = extent.largest;
        found[2 * warp + 1] = extent.smallest;
    }
    __syncthreads();
    for (int k = 0; k < warps; ++k) extent.include({found[2 * k], found[2 * k + 1]});
    if (!fits || !extent.all_finite() || extent.highest() - extent.lowest() > 26) {
        const uint32 groups = blockDim.x / LANES;
        for (uint32 k = threadIdx.x / LANES; k - threadIdx.x / LANES < each; k += groups)
            sum_span<float32, float32, LANES, false, FLIGHT, false>(data, spans, first + k, k < each && first + k < last,
                                                                    results, nullptr, nullptr);
        return;
    }
    const int unit = extent.all_zero() ? 0 : extent.lowest() - 23;
    const double anchor = __longlong_as_double(int64(uint64(unit + 52 + 1023) << 52 | 0x8000000000000ull));
    const uint64 anchor_bits = __double_as_longlong(anchor);
    if (start + warp * OF_WARP >= end) {  // there is nothing for this warp
        if (lane == 31) bases[warp] = 0;
    } else {
#pragma unroll
        for (int r = 0; r < READS; ++r) {
            uint64 sum = 0;
            const uint32 vector = (warp * READS + r) * 32 + lane;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                sum += uint64(__double_as_longlong(anchor + double(read[r][k])));
                sums[vector * 4 + k] = sum;
            }
            vectors[vector] = sum;
        }
        __syncwarp();
        uint64* const mine = vectors + (warp * 32 + lane) * READS;  // READS neighbouring vectors
        uint64 before[READS], sum = 0;
#pragma unroll
        for (int k = 0; k < READS; ++k) {
            before[k] = sum;
            sum += mine[k];
        }
        uint64 inclusive = sum;
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            const uint64 other = __shfl_up_sync(~0u, inclusive, distance);
            if (lane >= distance) inclusive += other;
        }
        __syncwarp();
#pragma unroll
        for (int k = 0; k < READS; ++k) mine[k] = before[k] + (inclusive - sum);
        if (lane == 31) bases[warp] = inclusive;
    }
    __syncthreads();
    for (uint32 k = threadIdx.x; k < last - first; k += blockDim.x) {
        const uint32 from = edges[k], to = edges[k + 1];
        uint64 total = 0;
        if (from < to) {
            total = sums[to - 1] + vectors[(to - 1) / 4] - uint64(to - from) * anchor_bits;
            if (from) total -= sums[from - 1] + vectors[(from - 1) / 4];
            for (uint32 w = from ? (from - 1) / OF_WARP : 0; w < (to - 1) / OF_WARP; ++w) total += bases[w];
        }
        put_units(results, first + k, int64(total), unit, to - from);
    }
}
