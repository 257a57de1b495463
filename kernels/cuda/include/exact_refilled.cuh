// Calls consume(tile, refill) for every tile of this block's share, for a sum that is done with a tile vector by vector and then calls
// refill(k): vector k of the next tile is read to where vector k of this one was. That takes no registers for a second tile, and no
// moves.
#pragma once
#include "exact_tiles.cuh"

// What the compiler shall not know to be what it has already: what is made of it then takes no registers before.
template <class T>
__device__ T anew(T x) {
    asm volatile("" : "+l"(x));
    return x;
}

template <int FLIGHT, class T, class Consume>
__device__ void refill_each_tile(const Vectors<T>& source, Consume& consume) {
    constexpr int SIZE = Vector<T>::size;
    const uint32 length = FLIGHT * blockDim.x, last = (FLIGHT - 1) * blockDim.x;  // of a tile of the block, and its last vectors
    const T* const start = source.data + source.head;
    const T* const stop = start + (source.whole > last ? source.whole - last : 0) * SIZE;  // where tiles begin that are whole
    const T* next = start + (uint64(blockIdx.x) * length + threadIdx.x) * SIZE;
    const uint64 step = uint64(gridDim.x) * length * SIZE;
    uint32 number = blockIdx.x;
    if (uint64(number) * length >= source.all) return;
    auto tile = source.template tile<FLIGHT>(number);
#pragma unroll 1
    for (;;) {
        number += gridDim.x;
        next += step;
        const bool more = next < stop;
        consume(tile, [&](int k) {
            if (more) tile.vectors[k] = Vector<T>::load(next + k * blockDim.x * SIZE);
        });
        if (more) continue;
        const Vectors<T> again(anew(source.data), anew(source.count));
        if (uint64(number) * length >= again.all) return;
        tile = again.template tile<FLIGHT>(number);
    }
}
