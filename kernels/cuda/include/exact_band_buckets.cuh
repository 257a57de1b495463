// Buckets for the squares of a band of exponents: one for every 4 exponent fields.
//
// Exactness: an element of field base + 4b + s with 0 ≤ s < 4 is t = m · 2^s, m its significand, in a unit that its bucket b alone
// decides. Its square t² is below 2^54 (float32) or 2^112 (float64), so that 2^10 or 2^16 of them stay below 2^64 or 2^128. In between
// a bucket may be taken below zero, for it is an integer modulo 2^64 or 2^128.
#pragma once
#include "exact_block_total.cuh"
#include "exact_span.cuh"
#include "exact_words.cuh"

constexpr int FIELDS_OF_BUCKET = 4;

// The bucket of float32 is an integer of 64 bits, that of float64 of 128.
template <class T>
struct SquareBucket;

template <>
struct SquareBucket<float32> {
    uint64 sum;
    static constexpr int ORIGIN = 2148 - 300;  // the place of field 0 among the units of squares
    static constexpr int MOST = 1 << 10;       // squares

    __device__ static uint32 high(float32 x) { return __float_as_uint(x); }
    // Adds the square of a normal element whose field is `shift` above that of its bucket. `fraction` has all bits of a fraction set.
    __device__ static void add(SquareBucket& bucket, uint32 shift, float32 x, uint32 fraction) {
        const uint32 t = ((high(x) & fraction) | 1u << 23) << shift;
        bucket.sum += uint64(t) * t;
    }
    // Takes the squares of so many of the first elements of the bucket away.
    __device__ static void take_away(SquareBucket& bucket, uint32 count) { bucket.sum -= uint64(count) << 46; }
    // Of the buckets of 32 lanes side by side, from that of this lane on.
    __device__ static void fold(SquareBucket* row, int place, const BlockTotal& to) {
        const int lane = threadIdx.x % 32;
        uint64 low = 0, high = 0;
#pragma unroll 4
        for (int k = 0; k < 32; ++k) {
            SquareBucket& at = row[(k + lane) % 32];  // no two lanes in one bank
            low += uint32(at.sum);
            high += at.sum >> 32;
            at.sum = 0;
        }
        if (low | high) to.add((int128(high) << 32) + low, place);
    }
};

template <>
struct alignas(16) SquareBucket<float64> {
    uint32 words[4];
    static constexpr int ORIGIN = -2;  // in units of 2^−2148 the square of the smallest normal number begins at 0
    static constexpr int MOST = 1 << 16;

    __device__ static uint32 high(float64 x) { return uint32(uint64(__double_as_longlong(x)) >> 32); }
    __device__ static void add(SquareBucket& bucket, uint32 shift, float64 x, uint32 fraction) {
        uint4& memory = reinterpret_cast<uint4&>(bucket);  // one access of 16 bytes
        const uint4 old = memory;
        const uint32 low = uint32(__double_as_longlong(x)), upper = (high(x) & fraction) | 1u << 20;
        const uint32 t0 = low << shift, t1 = __funnelshift_l(low, upper, shift);
        uint32 square[4], sum[4] = {old.x, old.y, old.z, old.w}, none = 0;
        join(square, wide_product(t0, t0), wide_product(t0, 2 * t1), wide_product(t1, t1));
        add_carrying(sum, square, none);
        memory = {sum[0], sum[1], sum[2], sum[3]};
    }
    __device__ static void take_away(SquareBucket& bucket, uint32 count) { bucket.words[3] -= count << 8; }  // 2^104 each
    __device__ static void fold(SquareBucket* row, int place, const BlockTotal& to) {
        const int lane = threadIdx.x % 32;
        uint64 sums[4] = {};
#pragma unroll 2
        for (int k = 0; k < 32; ++k) {
            SquareBucket& at = row[(k + lane) % 32];
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                sums[word] += at.words[word];
                at.words[word] = 0;
            }
        }
        if (!(sums[0] | sums[1] | sums[2] | sums[3])) return;
        to.add((int128(sums[1]) << 32) + sums[0], place);
        to.add((int128(sums[3]) << 32) + sums[2], place + 64);
    }
};
