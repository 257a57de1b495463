// What terms are made of: the elements of one array, or those of two arrays, which are multiplied in pairs.
#pragma once
#include "exact_tiles.cuh"

// Two elements that are to be multiplied.
template <class T>
struct Factors {
    T x, y;
};
template <class T>
__device__ Factors<T> factors(T x, T y) {
    return {x, y};
}

template <class T>
struct Pairs {
    const T *x, *y;
    __device__ Pairs operator+(uint64 elements) const { return {x + elements, y + elements}; }
    __device__ Factors<T> operator[](uint64 at) const { return {x[at], y[at]}; }
};

// Where the elements of a kind of terms lie. Only products read `y`.
template <class T, int TERMS>
struct TermsFrom {
    using Type = const T*;
    static __device__ Type of(const T* x, const T*) { return x; }
};
template <class T>
struct TermsFrom<T, PRODUCTS> {
    using Type = Pairs<T>;
    static __device__ Type of(const T* x, const T* y) { return {x, y}; }
};
template <class T, int TERMS>
using From = typename TermsFrom<T, TERMS>::Type;

// What is read of two arrays. Behind the end there are −0 in x and +0 in y, whose product adds nothing to any sum, not even a sign.
template <class Of>
struct Both {
    static constexpr int SIZE = Of::SIZE;
    Of x, y;

    __device__ auto operator[](int at) const { return factors(x[at], y[at]); }
};

// What a thread takes at a time.
template <class T, int TERMS, int FLIGHT>
using TileFrom = typename Either<TERMS == PRODUCTS, Both<Tile<T, FLIGHT>>, Tile<T, FLIGHT>>::Type;
