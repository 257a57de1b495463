// Exact sums of float32 and bfloat16, whatever their exponents: each thread has a column of floating-point totals in
// shared memory, one for every 2^GROUP exponents. An element's exponent field alone chooses the total that it is added to.
//
// Exactness: an element of bucket b is a multiple of its unit, 2^(b · 2^GROUP) times half the smallest subnormal (the field of
// subnormals is 0, that of the smallest normal numbers, with the same last place, is 1), and below 2^WIDTH of it, with
// WIDTH = PRECISION − 1 + 2^GROUP: 39 for float32, 15 for bfloat16. BUDGET of them stay below 2^53 (double totals, 2^14
// elements) or 2^24 units (float totals, 2^9 elements), so no addition rounds. Float totals count in 2^9 times the unit
// of the elements, so that 2^9 of the largest do not overflow; the smallest, 2^-133, is still 2^7 times the smallest
// float.
//
// After BUDGET elements a thread, the warp adds up its 32 columns as integers: a lane has one bucket (or a part of its
// columns) and keeps the sum in a register. KEEP such sums, of at most 2^53 · 16 or 2^24 · 32 each, stay below 2^63.
#pragma once
#include "exact_specials.cuh"
#include "exact_total.cuh"

template <class T>
struct Bucketing;
template <>
struct Bucketing<float32> {
    using Real = double;
    static constexpr int GROUP = 4, BUDGET = 1 << 14, KEEP = 32, SCALE = 0;
    static __device__ void add(double& total, float x) { total += x; }
};
template <>
struct Bucketing<bfloat16> {
    using Real = float;
    static constexpr int GROUP = 3, BUDGET = 1 << 9, KEEP = 1 << 30, SCALE = 9;
    static __device__ void add(float& total, float x) { total = __fmaf_rn(x, 0x1p-9f, total); }
};

template <class T, int TERMS, int THREADS>
struct BucketSum {
    using B = Bucketing<T>;
    using Real = typename B::Real;
    static constexpr int BUCKETS = 256 >> B::GROUP, BYTES = BUCKETS * sizeof(Real);
    static constexpr int COLUMNS = BUCKETS;  // columns that a lane adds up: of 32 columns, 16 with 16 buckets, else all 32
    static constexpr int UNIT = Format<T>::LOWEST - 1;
    static_assert(THREADS % 32 == 0 && 32 % COLUMNS == 0);

    Specials<TERMS> specials;
    Total total;
    Real* buckets;  // bucket k of all threads side by side
    int64 kept = 0;
    int left = B::BUDGET, sums = 0;

    __device__ BucketSum(char* memory, const Total& total) : total(total), buckets(reinterpret_cast<Real*>(memory)) {
#pragma unroll 8
        for (int k = 0; k < BUCKETS; ++k) buckets[k * THREADS + threadIdx.x] = 0;
    }

    // All threads of a warp call this equally often.
    template <int FLIGHT>
    __device__ void operator()(Tile<T, FLIGHT>& tile) {
        if (!all_finite(tile)) specials.set_aside(tile);
        specials.look(tile);
        add(tile);
    }

    // The same for elements that are finite, without a look at them.
    template <int FLIGHT>
    __device__ void add(const Tile<T, FLIGHT>& tile) {
        if (left < tile.SIZE) empty();
        left -= tile.SIZE;
        // The offset is in bytes, which takes one operation less than an index.
        constexpr int STRIDE = THREADS * sizeof(Real), FIELD = 23 + B::GROUP;
        char* const column = reinterpret_cast<char*>(buckets + threadIdx.x);
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const float x = widen(tile[at]);
            const uint32 bucket = (__float_as_uint(x) & 0x7fffffffu) >> FIELD;
            B::add(*reinterpret_cast<Real*>(column + bucket * STRIDE), TERMS == MAGNITUDES ? fabsf(x) : x);
        }
    }

    __device__ int bucket() const { return threadIdx.x % BUCKETS; }

    __device__ void empty() {
        const double scale = __longlong_as_double(int64(1023 - (bucket() << B::GROUP) - UNIT + B::SCALE) << 52);
        const int lane = threadIdx.x % 32;
        Real* const row = buckets + bucket() * THREADS + (threadIdx.x - lane) + lane / COLUMNS * COLUMNS;
        __syncwarp();
#pragma unroll 4
        for (int k = 0; k < COLUMNS; ++k) {
            Real& at = row[(k + lane) % COLUMNS];  // no two lanes in one bank
            kept += int64(double(at) * scale);
            at = 0;
        }
        __syncwarp();
        left = B::BUDGET;
        if (++sums == B::KEEP) {
            total.add(kept, position());
            kept = sums = 0;
        }
    }

    __device__ int position() const { return UNIT + 1074 + (bucket() << B::GROUP); }

    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        empty();
        __syncthreads();
        int64* const slots = reinterpret_cast<int64*>(buckets);
        slots[threadIdx.x] = kept;
        __syncthreads();
        if (threadIdx.x >= 32) return;
        int128 sum = 0;
        for (int warp = 0; warp < THREADS / 32; ++warp) sum += slots[warp * 32 + threadIdx.x];
        total.add(sum, position());
    }
};
