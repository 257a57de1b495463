// Pulls parts of a source out of pinned memory, each as soon as a thread of the host has read it.
//
// A block takes every gridDim.x-th part. It waits for a part at most for GIVE_UP_NS and then ends, so that a slow source
// holds no GPU for long; the host starts the kernel again for what is left.
#include "clock.cuh"

// The words of a place of pinned memory (`kernels/cuda/staging/native.py` writes them). A place has a line of its own, and
// SEQUENCE, the number of its part + 1, is written last.
enum { SEQUENCE, ADDRESS, BYTES, WHERE, WORDS_OF_PLACE = 8 };

constexpr uint64 GIVE_UP_NS = 8000000;
constexpr int FLIGHT = 8;

template <class Unit>
__device__ inline void put(char* to, uint4 read) {
    const Unit* units = reinterpret_cast<const Unit*>(&read);
#pragma unroll
    for (int k = 0; k < int(16 / sizeof(Unit)); ++k) reinterpret_cast<Unit*>(to)[k] = units[k];
}

// `count` times 16 bytes, by all threads of the block. The host writes to a place again and again, so that no cache of the
// GPU may answer.
template <class Unit>
__device__ inline void copy_part(const uint4* from, char* to, uint64 count) {
    uint64 k = threadIdx.x;
    for (; k + (FLIGHT - 1) * blockDim.x < count; k += FLIGHT * blockDim.x) {
        uint4 read[FLIGHT];
#pragma unroll
        for (int n = 0; n < FLIGHT; ++n) read[n] = __ldcv(from + k + n * blockDim.x);
#pragma unroll
        for (int n = 0; n < FLIGHT; ++n) put<Unit>(to + 16 * (k + n * blockDim.x), read[n]);
    }
    for (; k < count; k += blockDim.x) put<Unit>(to + 16 * k, __ldcv(from + k));
}

// Whether `part` is there to be taken (1), has been taken before (0), or does not come in time (-1).
__device__ inline int wait_for(const volatile uint64* place, const volatile uint64* taken, uint64 part, bool again) {
    if (again && *taken > part) return 0;
    const uint64 begun = now_ns();
    uint64 sequence;
    while ((sequence = place[SEQUENCE]) <= part) {
        if (now_ns() - begun > GIVE_UP_NS) return -1;
        __nanosleep(1000);  // each look crosses the bus
    }
    __threadfence_system();
    return sequence == part + 1 ? 1 : 0;
}

// Copy the parts first … stop − 1 to `target`, each to its WHERE. `taken` gets the number of the part + 1 for each place
// whose part has arrived, and `busy` how long the copying took: the sum over all blocks is the time of the grid. `again`
// if an earlier launch may have taken some of the parts.
__global__ void __launch_bounds__(512)
    pull_parts(const volatile uint64* places, volatile uint64* taken, volatile uint64* busy, uint64 slots, uint64 first,
               uint64 stop, char* target, uint64 again) {
    __shared__ int state;
    __shared__ uint64 address, bytes, where;
    uint64 spent = 0;
    for (uint64 part = first + blockIdx.x; part < stop; part += gridDim.x) {
        const uint64 slot = part % slots;
        uint64 begun = 0;
        if (threadIdx.x == 0) {
            const volatile uint64* place = places + slot * WORDS_OF_PLACE;
            state = wait_for(place, taken + slot, part, again != 0);
            address = place[ADDRESS], bytes = place[BYTES], where = place[WHERE];
            begun = now_ns();
        }
        __syncthreads();
        if (state < 0) break;
        if (state > 0) {
            const uint4* from = reinterpret_cast<const uint4*>(address);
            char* to = target + where;
            const uint64 whole = bytes / 16, aligned = uint64(to) | 16;
            if (aligned % 16 == 0) copy_part<uint4>(from, to, whole);
            else if (aligned % 4 == 0) copy_part<uint32>(from, to, whole);
            else copy_part<unsigned char>(from, to, whole);
            const uint64 rest = 16 * whole + threadIdx.x;
            if (rest < bytes) to[rest] = *(reinterpret_cast<const volatile char*>(from) + rest);
        }
        __syncthreads();
        if (threadIdx.x == 0 && state > 0) {
            spent += now_ns() - begun;
            __threadfence_system();
            taken[slot] = part + 1;
        }
    }
    if (threadIdx.x == 0 && spent > 0) busy[blockIdx.x] += spent / gridDim.x;
}
