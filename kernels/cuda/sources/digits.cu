// Exact sums, digit by digit: every element is an integer times 2^UNIT, split over digits of 32 bits, and each thread
// adds those to 64-bit bins of its own in shared memory (bin d of all threads side by side: no bank conflicts, no
// atomics). The bins of all threads are added up in memory. Integer addition has no order, so the sum has none.
//
// No bin overflows while 2 · 2^32 · count < 2^63: at most 2^28 elements a launch leave room.
#include "reductions.cuh"

enum Flag : uint32 { NAN_SEEN = 1, POSITIVE_INFINITY = 2, NEGATIVE_INFINITY = 4, NOT_NEGATIVE_ZERO = 8 };

// A number as ±significand · 2^(position + UNIT of the type), or not finite.
struct Parts {
    uint64 significand;
    int32 position;
    bool negative, finite, nan;
};

__device__ inline Parts parts_of(float x) {
    const uint32 bits = __float_as_uint(x), field = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
    const uint32 hidden = field ? 0x800000u : 0;
    return {fraction | hidden, int32(field ? field - 1 : 0), bits >> 31 != 0, field != 0xff, x != x};
}
__device__ inline Parts parts_of(double x) {
    const uint64 bits = __double_as_longlong(x), fraction = bits & 0xfffffffffffffull;
    const uint32 field = uint32(bits >> 52) & 0x7ff;
    const uint64 hidden = field ? 1ull << 52 : 0;
    return {fraction | hidden, int32(field ? field - 1 : 0), bits >> 63 != 0, field != 0x7ff, x != x};
}

// significand · 2^position into PIECES bins from position / 32 on, each piece below 2^32.
template <int PIECES>
__device__ void deposit(int64* bins, uint64 significand, int32 position, bool negative) {
    uint128 shifted = uint128(significand) << (position & 31);
    int64* bin = bins + (position >> 5) * blockDim.x;
#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece, bin += blockDim.x, shifted >>= 32) {
        const int64 digit = uint32(shifted);
        *bin += negative ? -digit : digit;
    }
}

// What an element adds: its value, its magnitude, or its square.
enum Terms { VALUES, MAGNITUDES, SQUARES };

template <int TERMS, class W>
__device__ void add(int64* bins, uint32& flags, W x) {
    constexpr bool WIDE = sizeof(W) == 8;
    const Parts parts = parts_of(x);
    const bool negative = TERMS == VALUES && parts.negative;
    if (parts.significand != 0 || !negative) flags |= NOT_NEGATIVE_ZERO;
    if (!parts.finite) {
        flags |= parts.nan ? NAN_SEEN : negative ? NEGATIVE_INFINITY : POSITIVE_INFINITY;
    } else if (TERMS != SQUARES) {
        deposit<WIDE ? 3 : 2>(bins, parts.significand, parts.position, negative);
    } else if (!WIDE) {
        deposit<3>(bins, parts.significand * parts.significand, 2 * parts.position, false);
    } else {
        const uint128 square = uint128(parts.significand) * parts.significand;
        deposit<3>(bins, uint64(square), 2 * parts.position, false);
        deposit<3>(bins, uint64(square >> 64), 2 * parts.position + 64, false);
    }
}

// `sums` holds DIGITS integers of 64 bits, the lowest digit first, then the flags.
template <class T, int TERMS, int DIGITS>
__global__ void digits(const T* data, uint64 count, uint64* sums) {
    extern __shared__ int64 memory[];
    int64* const bins = memory + threadIdx.x;
    for (int digit = 0; digit < DIGITS; ++digit) bins[digit * blockDim.x] = 0;
    uint32 flags = 0;
    const uint64 step = uint64(gridDim.x) * blockDim.x;
    for (uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += step)
        add<TERMS>(bins, flags, widen(data[at]));
    __shared__ uint32 seen;
    if (threadIdx.x == 0) seen = 0;
    __syncthreads();
    for (uint32 flag = 1; flag <= NOT_NEGATIVE_ZERO; flag *= 2)
        if (__any_sync(~0u, flags & flag) && threadIdx.x % 32 == 0) atomicOr(&seen, flag);
    __syncthreads();
    if (threadIdx.x == 0 && seen) atomicOr(sums + DIGITS, uint64(seen));
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (int digit = threadIdx.x / 32; digit < DIGITS; digit += warps) {
        int64 sum = 0;
        for (int thread = lane; thread < blockDim.x; thread += 32) sum += memory[digit * blockDim.x + thread];
        for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
        if (lane == 0 && sum != 0) atomicAdd(sums + digit, uint64(sum));
    }
}
