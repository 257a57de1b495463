// Which thread sees which elements. Every thread meets its own in order of their index.
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

// One element at a time, the whole grid apart.
template <class R, class T = typename R::Element>
__device__ typename R::Accumulator fold_elements(const Piece<T>& piece) {
    auto a = R::Accumulator::identity();
    for (uint64 at = global_thread(); at < piece.count; at += global_threads()) visit<R>(a, piece, at);
    return a;
}

// Sixteen bytes at a time, FLIGHT reads issued before the first is used: latency is hidden by what is in flight, so a
// thread that waits for one read at a time leaves bandwidth unused. A block reads tiles of FLIGHT reads a thread, the
// grid tile beside tile. What is left goes one read a thread, and the elements before the first boundary of 16 bytes
// and after the last go singly, to the first threads of the grid.
template <class R, int FLIGHT, class T = typename R::Element>
__device__ typename R::Accumulator fold_vectors(const Piece<T>& piece) {
    constexpr int N = Vector<T>::size;
    const uint64 misaligned = reinterpret_cast<uint64>(piece.data) % 16 / sizeof(T);
    uint64 head = misaligned ? N - misaligned : 0;
    if (head > piece.count) head = piece.count;
    const uint64 vectors = (piece.count - head) / N, tail = head + vectors * N;
    const T* const base = piece.data + head;
    const uint64 tile = uint64(FLIGHT) * blockDim.x, tiles = vectors / tile;

    auto a = R::Accumulator::identity();
    if (global_thread() < head) visit<R>(a, piece, global_thread());
#pragma unroll 1  // more flights at a time would cost registers, and with them blocks
    for (uint64 t = blockIdx.x; t < tiles; t += gridDim.x) {
        const uint64 i = t * tile + threadIdx.x;
        Vector<T> flight[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) flight[k] = Vector<T>::load(base + (i + k * blockDim.x) * N);
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) visit<R>(a, piece, flight[k], head + (i + k * blockDim.x) * N);
    }
#pragma unroll 1
    for (uint64 i = tiles * tile + global_thread(); i < vectors; i += global_threads())
        visit<R>(a, piece, Vector<T>::load(base + i * N), head + i * N);
    if (tail + global_thread() < piece.count) visit<R>(a, piece, tail + global_thread());
    return a;
}
