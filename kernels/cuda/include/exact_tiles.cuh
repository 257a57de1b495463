// An array as tiles. A tile is what one thread takes at a time: several reads of 16 bytes that are in flight together.
#pragma once
#include "exact_format.cuh"
#include "vector.cuh"

template <class T, int FLIGHT>
struct Tile {
    static constexpr int LANES = Vector<T>::size, SIZE = FLIGHT * LANES;
    Vector<T> vectors[FLIGHT];

    // `at` must be known at compile time after unrolling.
    __device__ T operator[](int at) const { return vectors[at / LANES][at % LANES]; }

    __device__ void make_zero(int at, bool negative) {
        uint32* const words = vectors[at / LANES].words;
        const int lane = at % LANES;
        const uint32 sign = negative ? 0x80000000u : 0;
        if constexpr (sizeof(T) == 8) {
            words[2 * lane] = 0;
            words[2 * lane + 1] = sign;
        } else if constexpr (sizeof(T) == 4) {
            words[lane] = sign;
        } else {
            uint32& word = words[lane / 2];
            word = lane % 2 ? (word & 0xffffu) | sign : (word & 0xffff0000u) | sign >> 16;
        }
    }
};

template <class T>
__device__ Vector<T> zeros(bool negative) {
    if (!negative) return {{0, 0, 0, 0}};
    if constexpr (sizeof(T) == 8) return {{0, 0x80000000u, 0, 0x80000000u}};
    const uint32 word = sizeof(T) == 4 ? 0x80000000u : 0x80008000u;
    return {{word, word, word, word}};
}

// `count` elements at `data` as vectors: first those that lie between boundaries of 16 bytes, then one vector for each
// element before and after those, with zeros in its other lanes; beyond the end there are zeros only. They are −0, which
// adds nothing to any sum, not even a sign, unless +0 is asked for.
template <class T, bool NEGATIVE = true>
struct Vectors {
    const T* data;
    uint64 count, head, whole, all;

    __device__ Vectors(const T* data, uint64 count) : data(data), count(count) {
        constexpr int N = Vector<T>::size;
        head = (16 - reinterpret_cast<uint64>(data) % 16) % 16 / sizeof(T);
        if (head > count) head = count;
        whole = (count - head) / N;
        all = whole + (count - whole * N);
    }

    __device__ Vector<T> operator[](uint64 number) const {
        if (number < whole) return Vector<T>::load(data + head + number * Vector<T>::size);
        Vector<T> vector = zeros<T>(NEGATIVE);
        if (number < all) {
            const uint64 edge = number - whole;  // the head's elements, then the tail's
            const Bits<T> bits = bits_of(data[edge < head ? edge : edge + whole * Vector<T>::size]);
            memcpy(vector.words, &bits, sizeof(T));
        }
        return vector;
    }

    // Tile `number` of this thread: its block's vectors lie side by side.
    template <int FLIGHT>
    __device__ Tile<T, FLIGHT> tile(uint64 number) const {
        Tile<T, FLIGHT> tile;
        const uint64 first = number * FLIGHT * blockDim.x + threadIdx.x;
        if (first + (FLIGHT - 1) * blockDim.x < whole) {
            const T* const at = data + head + first * Vector<T>::size;
#pragma unroll
            for (int k = 0; k < FLIGHT; ++k) tile.vectors[k] = Vector<T>::load(at + k * blockDim.x * Vector<T>::size);
        } else {
#pragma unroll
            for (int k = 0; k < FLIGHT; ++k) tile.vectors[k] = (*this)[first + k * blockDim.x];
        }
        return tile;
    }
};

template <class T, int FLIGHT>
struct TilePair {
    Tile<T, FLIGHT> x, y;
};

// Two arrays of one length that lie alike between the boundaries. The products of what fills them up are −0 · +0.
template <class T>
struct VectorPairs {
    Vectors<T> x;
    Vectors<T, false> y;
    uint64 all;

    __device__ VectorPairs(const T* x, const T* y, uint64 count) : x(x, count), y(y, count), all(this->x.all) {}

    template <int FLIGHT>
    __device__ TilePair<T, FLIGHT> tile(uint64 number) const {
        return {x.template tile<FLIGHT>(number), y.template tile<FLIGHT>(number)};
    }
};

// Calls consume(tile) for every tile of this block's share of the array or pair of arrays. With AHEAD the next tile is
// being read while one is consumed: more registers, but something is always in flight.
template <int FLIGHT, bool AHEAD, class Source, class Consume>
__device__ void for_each_tile(const Source& source, Consume& consume) {
    const uint64 tiles = (source.all + FLIGHT * blockDim.x - 1) / (FLIGHT * blockDim.x);
    uint64 number = blockIdx.x;
    if (number >= tiles) return;
    auto tile = source.template tile<FLIGHT>(number);
#pragma unroll 1
    for (;;) {
        number += gridDim.x;
        const bool more = number < tiles;
        if constexpr (AHEAD) {
            auto next = tile;
            if (more) next = source.template tile<FLIGHT>(number);
            consume(tile);
            if (!more) return;
            tile = next;
        } else {
            consume(tile);
            if (!more) return;
            tile = source.template tile<FLIGHT>(number);
        }
    }
}
