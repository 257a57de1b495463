// Values beside the squares of a band of exponents: a window of running totals in float64, of which each tile begins anew.
//
// A level of unit u begins at its bias, 1.5 · 2^(52+u). Terms are at most 2^(51−N+u) in magnitude, so rounded to whole units they are,
// too, and 2^N of them move the total by at most 2^(51+u). So it stays in [2^(52+u), 2^(53+u)], where bits are consecutive integers: the
// bits less those of the bias are the sum in units of 2^u. What rounding leaves of a term is exact and at most half a unit, which is
// 2^(51−N) units of the next level. The unit of the last level divides all elements of the band, so nothing remains below it.
//
// The bits of a tile's totals are added to integers modulo 2^64, and the biases are taken away when a warp adds up its integers.
#pragma once
#include "exact_block_total.cuh"

// L levels for elements of BITS bits below the first.
template <int L, int BITS>
struct BandWindow {
    static constexpr int N = 4, MOST = 1 << N, SPACING = 52 - N;      // MOST: elements of a thread's tile
    static constexpr int BINADES = 51 - N + SPACING * (L - 1) - BITS;  // that it holds
    static constexpr int TILES = 120;  // sums of so many tiles of 32 lanes are below 2^63

    struct Totals {
        double level[L];

        __device__ void add(double x) {
#pragma unroll
            for (int k = 0; k < L - 1; ++k) {
                const double sum = level[k] + x, kept = sum - level[k];
                level[k] = sum;
                x -= kept;
            }
            level[L - 1] += x;
        }
    };

    uint64 sums[L] = {};

    // `lowest` is the exponent of the smallest elements.
    static __device__ int unit(int lowest, int level) { return lowest - BITS + SPACING * (L - 1 - level); }
    static __device__ uint64 bias(int lowest, int level) {
        return uint64(unit(lowest, level) + 52 + 1023) << 52 | 0x8000000000000ull;
    }
    static __device__ Totals begin(int lowest) {
        Totals totals;
#pragma unroll
        for (int level = 0; level < L; ++level) totals.level[level] = __longlong_as_double(int64(bias(lowest, level)));
        return totals;
    }
    __device__ void end(const Totals& totals) {
#pragma unroll
        for (int level = 0; level < L; ++level) sums[level] += uint64(__double_as_longlong(totals.level[level]));
    }
    // Takes so many of the band's smallest elements away, from the highest level of which they are whole units.
    __device__ void take_away(uint32 count) {
        constexpr int UP = BITS / SPACING;
        sums[L - 1 - UP] -= uint64(count) << (BITS - UP * SPACING);
    }
    // The sums of so many tiles of a warp go to the block's total; all lanes take part.
    __device__ void fold(const BlockTotal& to, int lowest, int tiles) {
#pragma unroll
        for (int level = 0; level < L; ++level) {
            int64 sum = int64(sums[level] - uint64(tiles) * bias(lowest, level));
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
            if (threadIdx.x % 32 == 0 && sum) to.add(sum, unit(lowest, level) + 1074);
            sums[level] = 0;
        }
    }
};
