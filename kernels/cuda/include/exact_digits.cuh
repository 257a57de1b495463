// Fixed point wide enough for every sum: each thread has a column of signed digits in shared memory, in base 2^BITS.
//
// Digits k of all threads lie side by side: no two threads of a warp meet in a bank, and no thread needs atomics.
//
// Exactness: a double is s · 2^p in units of 2^LOW with |s| < 2^53 and p ≥ 0. With p = BITS · q + r it is
// (s mod 2^(BITS−r)) · 2^r in digit q, which is in [0, 2^BITS), and ⌊s / 2^(BITS−r)⌋ in digit q + 1, which is at most 2^53
// in magnitude. The halves of a product, its low BITS bits and up to 106 − BITS others, are added likewise; there s is below
// 2^max(54, BITS). After `carry` a digit is in [0, 2^BITS); ROOM additions later, each of at most 2^max(54, BITS) in
// magnitude, it is below 2^BITS + ROOM · 2^max(54, BITS) < 2^63. The top digit, which carry does not reduce, gets less than
// 2^22 an addition by the choice of SIZE, and so has room for the 2^40 additions that a launch may make.
//
// Base 2^52 seldom needs a carry; base 2^57 needs fewer digits, so that more threads find room.
#pragma once
#include "exact_total.cuh"

// A finite double as ±magnitude · 2^(position − 1074).
struct Significand {
    uint64 magnitude;
    uint32 position;
    bool negative;

    __device__ explicit Significand(double x) {
        const uint64 bits = __double_as_longlong(x);
        const uint32 high = uint32(bits >> 32), field = high >> 20 & 0x7ff;
        magnitude = uint64((high & 0xfffff) | (field ? 0x100000 : 0)) << 32 | uint32(bits);
        position = (field ? field : 1) - 1;
        negative = int32(high) < 0;
    }
};

// Every addend is a multiple of 2^LOWEST and below 2^HIGHEST.
template <int LOWEST, int HIGHEST, int THREADS, int BITS = 52>
struct Digits {
    // The last bit of a double's significand may lie 52 places below the last that is set.
    static constexpr int LOW = LOWEST - 52 < -1074 && LOWEST >= -1074 ? -1074 : LOWEST < -1074 ? LOWEST : LOWEST - 52;
    // The largest position of 53 bits. The upper half of a product may lie BITS − 53 places higher, but has fewer bits: what
    // it adds to is among these digits.
    static constexpr int TOP = HIGHEST - 53 - LOW;
    static constexpr int SIZE = TOP / BITS + 2 + (TOP % BITS > 20);
    static constexpr int ROOM = (1 << (63 - (BITS > 54 ? BITS : 54))) - 2;
    static constexpr int64 MASK = (1ll << BITS) - 1;
    static constexpr uint32 INVERSE = (1 << 20) / BITS + 1;
    static_assert(SIZE * (INVERSE * BITS - (1 << 20)) + (BITS - 1) * INVERSE < 1 << 20, "position / BITS below");

    int64 *memory, *column;
    int used = 0;  // additions since the last carry

    __device__ explicit Digits(int64* memory) : memory(memory), column(memory + threadIdx.x) {
#pragma unroll 8
        for (int k = 0; k < SIZE; ++k) column[k * THREADS] = 0;
    }

    // Call this before so many additions, which must not be more than ROOM.
    __device__ void reserve(int additions) {
        used += additions;
        if (used > ROOM) {
            carry();
            used = additions;
        }
    }

    // Adds significand · 2^position units of 2^LOW; |significand| ≤ 2^max(54, BITS).
    __device__ void add(int64 significand, uint32 position) {
        const uint32 digit = position * INVERSE >> 20;  // position / BITS
        const uint32 shift = position - digit * BITS;
        int64* const at = column + digit * THREADS;
        const int64 low = at[0], high = at[THREADS];
        at[0] = low + (int64(uint64(significand) << shift) & MASK);
        at[THREADS] = high + (significand >> (BITS - shift));
    }

    // Adds a finite double that is a multiple of 2^LOWEST.
    __device__ void add(double x) {
        constexpr int OFFSET = -1074 - LOW;
        const Significand s(x);
        const int position = int(s.position) + OFFSET;  // below 0 for zero alone
        add(s.negative ? -int64(s.magnitude) : int64(s.magnitude), OFFSET < 0 && position < 0 ? 0 : position);
    }

    __device__ void carry() {
        int64 carried = 0;
#pragma unroll 4
        for (int k = 0; k < SIZE - 1; ++k) {
            const int64 digit = column[k * THREADS] + carried;
            column[k * THREADS] = digit & MASK;
            carried = digit >> BITS;
        }
        column[(SIZE - 1) * THREADS] += carried;
    }

    // Adds the sums of all threads to the total, in whose units 2^LOW is 2^position; all threads must take part. A warp adds
    // up some of the digits, in two halves, so that no carry is needed first: 32 bits and 31 bits of at most 2^10 digits. With
    // SPARSE it first looks whether all threads have 0 there.
    template <bool SPARSE = false>
    __device__ void fold(const Total& total, int position) const {
        __syncthreads();
        const int lane = threadIdx.x % 32;
        for (int k = threadIdx.x / 32; k < SIZE; k += THREADS / 32) {
            int64 low = 0, high = 0, any = 0;
#pragma unroll
            for (int thread = lane; thread < THREADS; thread += 32) {
                const int64 digit = memory[k * THREADS + thread];
                low += uint32(digit);
                high += digit >> 32;
                any |= digit;
            }
            if (SPARSE && __all_sync(~0u, any == 0)) continue;
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) {
                low += __shfl_down_sync(~0u, low, distance);
                high += __shfl_down_sync(~0u, high, distance);
            }
            if (lane == 0) total.add((int128(high) << 32) + low, position + k * BITS);
        }
    }
};
