// Loops that only read: sixteen bytes a thread and read, with FLIGHT reads in flight. A loop stores its result only if
// that is a value that it never has, so that the compiler cannot leave out the reads.
#include "elements.cuh"

// STREAMING reads are marked to leave the cache first; other reads displace what the cache holds.
template <bool STREAMING>
__device__ uint4 load(const uint4* at) {
    return STREAMING ? __ldcs(at) : __ldcg(at);
}

__device__ inline uint32 any_of(uint4 v) { return v.x | v.y | v.z | v.w; }

template <int FLIGHT, bool STREAMING>
__global__ void read(const uint4* data, uint64 vectors, uint32* never) {
    const uint64 step = uint64(gridDim.x) * blockDim.x;
    uint64 i = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    uint32 seen = 0;
    for (; i + (FLIGHT - 1) * step < vectors; i += FLIGHT * step) {
        uint4 flight[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) flight[k] = load<STREAMING>(data + i + k * step);
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) seen |= any_of(flight[k]);
    }
    for (; i < vectors; i += step) seen |= any_of(load<STREAMING>(data + i));
    if (seen >> 31) *never = seen;
}

// The same loop by blocks of FLIGHTS flights each. There are many more blocks than run at a time, so that a multiprocessor
// that is nearer to the memory reads more.
template <int FLIGHT, int FLIGHTS>
__global__ void read_parts(const uint4* data, uint64 vectors, uint32* never) {
    const uint64 part = uint64(blockDim.x) * FLIGHT * FLIGHTS, end = min(uint64(blockIdx.x + 1) * part, vectors);
    uint64 i = blockIdx.x * part + threadIdx.x;
    uint32 seen = 0;
    for (; i + (FLIGHT - 1) * blockDim.x < end; i += FLIGHT * blockDim.x) {
        uint4 flight[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) flight[k] = load<false>(data + i + k * blockDim.x);
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) seen |= any_of(flight[k]);
    }
    for (; i < end; i += blockDim.x) seen |= any_of(load<false>(data + i));
    if (seen >> 31) *never = seen;
}

// The same by blocks of FLIGHTS flights that also write a vector for every `ratio` vectors that they read.
template <int FLIGHT, int FLIGHTS>
__global__ void read_and_write(const uint4* data, uint64 vectors, uint4* out, uint32 ratio) {
    const uint32 part = blockDim.x * FLIGHT * FLIGHTS, written = part / ratio;
    uint64 i = uint64(blockIdx.x) * part + threadIdx.x;
    const uint64 end = min(uint64(blockIdx.x + 1) * part, vectors);
    uint32 seen = 0;
    for (; i + (FLIGHT - 1) * blockDim.x < end; i += FLIGHT * blockDim.x) {
        uint4 flight[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) flight[k] = load<false>(data + i + k * blockDim.x);
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) seen |= any_of(flight[k]);
    }
    for (uint32 k = threadIdx.x; k < written; k += blockDim.x) out[uint64(blockIdx.x) * written + k] = {seen, k, seen, k};
}

// Fills an array with words that have no pattern and a clear top bit (the finaliser of MurmurHash3, by Austin Appleby).
__global__ void scramble(uint32* data, uint64 words) {
    const uint64 step = uint64(gridDim.x) * blockDim.x;
    for (uint64 i = uint64(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step) {
        uint64 x = i;
        x ^= x >> 33;
        x *= 0xff51afd7ed558ccdull;
        x ^= x >> 33;
        x *= 0xc4ceb9fe1a85ec53ull;
        x ^= x >> 33;
        data[i] = uint32(x) >> 1;
    }
}
