// Traversals: which thread sees which elements. Every thread sees its own elements in the order of their index.
#pragma once
#include "reductions.cuh"

// A piece of an array: `count` elements at `data`, of which the first has index `first` in the whole.
template <class T>
struct Piece {
    const T* data;
    uint64 count;
    uint64 first;
    bool omit_nan;
};

__device__ inline uint64 global_thread() { return uint64(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline uint64 global_threads() { return uint64(gridDim.x) * blockDim.x; }

template <class R, class T = typename R::Element>
__device__ void visit(typename R::Accumulator& a, const Piece<T>& piece, uint64 at) {
    const Wide<T> x = widen(piece.data[at]);
    if (piece.omit_nan && is_nan(x)) return;
    R::add(a, x, piece.first + at);
}

template <class R, class T = typename R::Element>
__device__ void visit(typename R::Accumulator& a, const Piece<T>& piece, const Vector<T>& v, uint64 at) {
    if constexpr (R::by_vector) {
        R::add_vector(a, v, piece.first + at, piece.omit_nan);
    } else if (piece.omit_nan) {  // asked once a vector, not once an element
#pragma unroll
        for (int lane = 0; lane < Vector<T>::size; ++lane) {
            const Wide<T> x = widen(v[lane]);
            if (!is_nan(x)) R::add(a, x, piece.first + at + lane);
        }
    } else {
#pragma unroll
        for (int lane = 0; lane < Vector<T>::size; ++lane) R::add(a, widen(v[lane]), piece.first + at + lane);
    }
}

// Each thread takes one element at a time, as many apart as the grid has threads.
template <class R, class T = typename R::Element>
__device__ typename R::Accumulator fold_elements(const Piece<T>& piece) {
    auto a = R::Accumulator::identity();
    for (uint64 at = global_thread(); at < piece.count; at += global_threads()) visit<R>(a, piece, at);
    return a;
}

// Visits the block's next tile, which begins at element `at`: each thread issues FLIGHT reads before it uses the first. A tile
// that is not WHOLE has only the first `vectors`.
template <class R, int FLIGHT, bool WHOLE, class T = typename R::Element>
__device__ __forceinline__ void visit_tile(typename R::Accumulator& a, const Piece<T>& piece, uint64 at, uint32 vectors) {
    constexpr uint32 N = Vector<T>::size;
    Vector<T> flight[FLIGHT];
#pragma unroll
    for (int k = 0; k < FLIGHT; ++k) {
        const uint32 i = threadIdx.x + k * blockDim.x;
        if (WHOLE || i < vectors) flight[k] = Vector<T>::load(piece.data + at + i * N);
    }
#pragma unroll
    for (int k = 0; k < FLIGHT; ++k) {
        const uint32 i = threadIdx.x + k * blockDim.x;
        if (WHOLE || i < vectors) visit<R>(a, piece, flight[k], at + i * N);
    }
}

// Reads sixteen bytes at a time, with FLIGHT reads in flight a thread: reads in flight hide latency, and a thread that waits
// for one read at a time leaves bandwidth unused. A block takes tiles of FLIGHT reads a thread, and the grid takes tile beside
// tile; the tiles have LONG reads a thread while there are enough of these for the whole grid. The elements before the first
// boundary of 16 bytes and after the last one go singly, to the first threads of the grid. The code divides by no number that
// is unknown at compile time: a division alone would take longer than reading a small array.
template <class R, int FLIGHT, int LONG = FLIGHT, class T = typename R::Element>
__device__ typename R::Accumulator fold_vectors(const Piece<T>& piece) {
    constexpr uint32 N = Vector<T>::size;
    const uint32 misaligned = uint32(reinterpret_cast<uint64>(piece.data)) % 16 / sizeof(T);
    uint64 head = misaligned ? N - misaligned : 0;
    if (head > piece.count) head = piece.count;
    const uint64 tail = piece.count - (piece.count - head) % N;

    auto a = R::Accumulator::identity();
    if (global_thread() < head) visit<R>(a, piece, global_thread());
    uint64 at = head;
    if constexpr (LONG > FLIGHT) {
        const uint32 tile = LONG * N * blockDim.x;
#pragma unroll 1
        for (; at + uint64(gridDim.x) * tile <= tail; at += uint64(gridDim.x) * tile)
            visit_tile<R, LONG, true>(a, piece, at + uint64(blockIdx.x) * tile, 0);
    }
    const uint32 tile = FLIGHT * N * blockDim.x;
    at += uint64(blockIdx.x) * tile;
#pragma unroll 1  // more flights at a time would cost registers, and with them blocks
    for (; at + tile <= tail; at += uint64(gridDim.x) * tile) visit_tile<R, FLIGHT, true>(a, piece, at, 0);
    if (at < tail) visit_tile<R, FLIGHT, false>(a, piece, at, uint32(tail - at) / N);
    if (tail + global_thread() < piece.count) visit<R>(a, piece, tail + global_thread());
    return a;
}
