// Exact sums of products of float32 or bfloat16, squares among them, whatever their exponents: each thread has a column of integers in
// shared memory, one for every 2^GROUP exponents of products. The exponent fields of both factors choose the integer that their
// product is added to.
//
// Exactness: an element of field f > 0 is m · 2^(f − BIAS) with |m| < 2^PRECISION, one of field 0 is 2m · 2^(−BIAS). In bucket
// b = s / 2^GROUP of the sum s of two fields, their product is t · 2^(b · 2^GROUP − 2 BIAS) with |t| < 2^WIDTH: the sum of the fields of
// a square is even, so that a square is shifted by one place less. BUDGET of them stay within the bits of an integer: 64, and 32 of bfloat16, for memory
// cannot be read and written as often as 64 would ask for. Then the warp adds up its 32 columns, integers of 64 bits in two halves;
// a lane keeps the sums of its buckets.
#pragma once
#include "exact_buckets.cuh"
#include "exact_dot.cuh"
#include "exact_span.cuh"
#include "exact_terms.cuh"

template <class T>
struct ProductInteger {
    using Type = uint32;
};
template <>
struct ProductInteger<float32> {
    using Type = uint64;
};

// The exponent field of a float, and its significand as an integer in the unit of that field.
template <class T>
struct Fielded {
    static constexpr int DROPPED = 24 - Format<T>::PRECISION;  // bits of a float32 that T has not
    uint32 field, significand;

    __device__ explicit Fielded(T x) {
        const uint32 bits = __float_as_uint(widen(x)), fraction = (bits & 0x7fffffu) >> DROPPED;
        field = bits >> 23 & 0xff;
        significand = fraction + (field ? 0x800000u >> DROPPED : fraction);
    }
};

template <class T, bool SQUARES_ALONE, int THREADS>
struct ProductBuckets {
    using Integer = typename ProductInteger<T>::Type;
    static constexpr int GROUP = 3, BUCKETS = 512 >> GROUP, BYTES = BUCKETS * sizeof(Integer);
    static constexpr int WIDTH = 2 * Format<T>::PRECISION + (1 << GROUP) - (SQUARES_ALONE ? 2 : 1);
    static constexpr int BUDGET = 1 << (8 * sizeof(Integer) - (SQUARES_ALONE ? 0 : 1) - WIDTH);
    static constexpr int BIAS = 126 + Format<T>::PRECISION, POSITION = 2148 - 2 * BIAS;
    static constexpr uint32 MASK = (1 << GROUP) - 1;
    static constexpr int PARTS = BUCKETS / 32;  // buckets of a lane
    static_assert(THREADS % 32 == 0);

    Integer* buckets;  // bucket k of all threads side by side
    int64 low[PARTS] = {}, high[PARTS] = {};
    int left = BUDGET;

    __device__ explicit ProductBuckets(char* memory) : buckets(reinterpret_cast<Integer*>(memory)) {
#pragma unroll 8
        for (int k = 0; k < BUCKETS; ++k) buckets[k * THREADS + threadIdx.x] = 0;
    }

    __device__ Integer& bucket(uint32 at) const {
        return *reinterpret_cast<Integer*>(reinterpret_cast<char*>(buckets + threadIdx.x) + at * uint32(THREADS * sizeof(Integer)));
    }

    // All threads of a warp call this equally often; all elements must be finite.
    template <int FLIGHT>
    __device__ void add(const Tile<T, FLIGHT>& tile) {
        reserve(tile.SIZE);
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const Fielded<T> x(tile[at]);
            const uint32 t = x.significand << (x.field & MASK / 2);
            bucket(x.field >> (GROUP - 1)) += Integer(t) * t;
        }
    }

    template <int FLIGHT>
    __device__ void add(const Tile<T, FLIGHT>& of_x, const Tile<T, FLIGHT>& of_y) {
        reserve(of_x.SIZE);
#pragma unroll
        for (int at = 0; at < of_x.SIZE; ++at) {
            const Fielded<T> x(of_x[at]), y(of_y[at]);
            const uint32 fields = x.field + y.field;
            const int32 sign = int32(__float_as_uint(widen(of_x[at])) ^ __float_as_uint(widen(of_y[at]))) >> 31;
            const int32 signed_x = (int32(x.significand << (fields & MASK)) ^ sign) - sign;
            bucket(fields >> GROUP) += Integer(int64(signed_x) * int32(y.significand));
        }
    }

    __device__ void reserve(int elements) {
        if (left < elements) empty();
        left -= elements;
    }

    __device__ void empty() {
        const int lane = threadIdx.x % 32;
        __syncwarp();
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            Integer* const row = buckets + (part * 32 + lane) * THREADS + (threadIdx.x - lane);
#pragma unroll 4
            for (int k = 0; k < 32; ++k) {
                Integer& at = row[(k + lane) % 32];  // no two lanes in one bank
                if constexpr (sizeof(Integer) == 8) {
                    low[part] += uint32(at);
                    high[part] += SQUARES_ALONE ? int64(at >> 32) : int64(at) >> 32;
                } else {
                    low[part] += SQUARES_ALONE ? int64(at) : int64(int32(at));
                }
                at = 0;
            }
        }
        __syncwarp();
        left = BUDGET;
    }

    __device__ void finish(const Total& total) {
        empty();
        __syncthreads();
        int64* const halves = reinterpret_cast<int64*>(buckets);
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            halves[(part * THREADS + threadIdx.x) * 2] = low[part];
            halves[(part * THREADS + threadIdx.x) * 2 + 1] = high[part];
        }
        __syncthreads();
        for (int bucket = threadIdx.x; bucket < BUCKETS; bucket += THREADS) {
            int128 sum = 0;
            for (int thread = bucket % 32; thread < THREADS; thread += 32) {
                const int64* const both = halves + (bucket / 32 * THREADS + thread) * 2;
                sum += (int128(both[1]) << 32) + both[0];
            }
            total.add(sum, POSITION + (bucket << GROUP));
        }
    }
};

template <class T, int THREADS>
struct SquareBucketSum {
    using Squares = ProductBuckets<T, true, THREADS>;
    static constexpr int BYTES = Squares::BYTES;
    Specials<SQUARES> specials;
    Total total;
    Squares squares;

    __device__ SquareBucketSum(char* memory, const Total& total) : total(total), squares(memory) {}
    template <int FLIGHT>
    __device__ void operator()(Tile<T, FLIGHT>& tile) {
        if (!all_finite(tile)) specials.set_aside(tile);
        squares.add(tile);
    }
    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        squares.finish(total);
    }
};

template <class T, int THREADS>
struct MomentBucketSum {
    using Values = BucketSum<T, VALUES, THREADS>;
    using Squares = ProductBuckets<T, true, THREADS>;
    static constexpr int BYTES = Values::BYTES + Squares::BYTES;
    Values values;
    Squares squares;

    __device__ MomentBucketSum(char* memory, const Total& total)
        : values(memory, total), squares(memory + Values::BYTES * THREADS) {}
    template <int FLIGHT>
    __device__ void operator()(Tile<T, FLIGHT>& tile) {
        values(tile);  // sets aside what is not finite
        squares.add(tile);
    }
    __device__ void finish() {
        values.finish();
        squares.finish(values.total.second());
    }
};

template <class T, int THREADS>
struct PairBucketSum {
    using Products = ProductBuckets<T, false, THREADS>;
    static constexpr int BYTES = Products::BYTES;
    PairSpecials specials;
    Total total;
    Products products;

    __device__ PairBucketSum(char* memory, const Total& total) : total(total), products(memory) {}
    template <int FLIGHT>
    __device__ void operator()(TilePair<T, FLIGHT>& pair) {
        if (!all_finite(pair.x) || !all_finite(pair.y)) specials.set_aside(pair.x, pair.y);
        specials.look(pair.x, pair.y);
        products.add(pair.x, pair.y);
    }
    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        products.finish(total);
    }
};
