// Exact sums of squares of float32, alone or with the values, whatever their exponents: each thread has a column of integers in
// shared memory, one for every 4 exponents. An element's exponent field alone chooses the integer that its square is added to.
//
// Exactness: an element of field f > 0 is m · 2^(f − 150) with |m| < 2^24, one of field 0 is 2m · 2^−150. In bucket b = f / 4 it
// is t · 2^(4b − 150) with t = m · 2^(f mod 4) below 2^27, and its square t² · 2^(8b − 300) with t² below 2^54. BUDGET of these
// stay below 2^64. Then the warp adds up its 32 columns in two halves of 32 bits; a lane keeps the sums of two buckets.
#pragma once
#include "exact_buckets.cuh"
#include "exact_span.cuh"
#include "exact_terms.cuh"

template <int THREADS>
struct SquareBuckets {
    static constexpr int BUCKETS = 64, BYTES = BUCKETS * 8, BUDGET = 1 << 10, POSITION = 2148 - 300;
    static_assert(THREADS % 32 == 0);

    uint64* buckets;  // bucket k of all threads side by side
    uint64 low[2] = {}, high[2] = {};
    int left = BUDGET;

    __device__ explicit SquareBuckets(char* memory) : buckets(reinterpret_cast<uint64*>(memory)) {
#pragma unroll 8
        for (int k = 0; k < BUCKETS; ++k) buckets[k * THREADS + threadIdx.x] = 0;
    }

    // All threads of a warp call this equally often; all elements must be finite.
    template <int FLIGHT>
    __device__ void add(const Tile<float32, FLIGHT>& tile) {
        if (left < tile.SIZE) empty();
        left -= tile.SIZE;
        char* const column = reinterpret_cast<char*>(buckets + threadIdx.x);
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const uint32 bits = __float_as_uint(tile[at]), field = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
            const uint32 t = (fraction + (field ? 0x800000u : fraction)) << (field & 3);
            uint64& bucket = *reinterpret_cast<uint64*>(column + (field >> 2) * uint32(THREADS * 8));
            bucket += uint64(t) * t;
        }
    }

    __device__ void empty() {
        const int lane = threadIdx.x % 32;
        __syncwarp();
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            uint64* const row = buckets + (half * 32 + lane) * THREADS + (threadIdx.x - lane);
#pragma unroll 4
            for (int k = 0; k < 32; ++k) {
                uint64& at = row[(k + lane) % 32];  // no two lanes in one bank
                low[half] += uint32(at);
                high[half] += at >> 32;
                at = 0;
            }
        }
        __syncwarp();
        left = BUDGET;
    }

    __device__ void finish(const Total& total) {
        empty();
        __syncthreads();
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            buckets[(warp * 64 + half * 32 + lane) * 2] = low[half];
            buckets[(warp * 64 + half * 32 + lane) * 2 + 1] = high[half];
        }
        __syncthreads();
        for (int bucket = threadIdx.x; bucket < BUCKETS; bucket += THREADS) {
            int128 sum = 0;
            for (int k = 0; k < THREADS / 32; ++k)
                sum += (int128(buckets[(k * 64 + bucket) * 2 + 1]) << 32) + buckets[(k * 64 + bucket) * 2];
            total.add(sum, POSITION + 8 * bucket);
        }
    }
};

template <int THREADS>
struct SquareBucketSum {
    static constexpr int BYTES = SquareBuckets<THREADS>::BYTES;
    Specials<SQUARES> specials;
    Total total;
    SquareBuckets<THREADS> squares;

    __device__ SquareBucketSum(char* memory, const Total& total) : total(total), squares(memory) {}
    template <int FLIGHT>
    __device__ void operator()(Tile<float32, FLIGHT>& tile) {
        if (!all_finite(tile)) specials.set_aside(tile);
        squares.add(tile);
    }
    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        squares.finish(total);
    }
};

template <int THREADS>
struct MomentBucketSum {
    using Values = BucketSum<float32, VALUES, THREADS>;
    static constexpr int BYTES = Values::BYTES + SquareBuckets<THREADS>::BYTES;
    Values values;
    SquareBuckets<THREADS> squares;

    __device__ MomentBucketSum(char* memory, const Total& total)
        : values(memory, total), squares(memory + Values::BYTES * THREADS) {}
    template <int FLIGHT>
    __device__ void operator()(Tile<float32, FLIGHT>& tile) {
        values(tile);  // sets aside what is not finite
        squares.add(tile);
    }
    __device__ void finish() {
        values.finish();
        squares.finish(values.total.second());
    }
};
