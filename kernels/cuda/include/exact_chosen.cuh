// Sums of squares, alone or with values, and of products of two arrays, of which the data choose one: a launch before looks at some
// elements. All are exact, so the choice is only one of speed.
#pragma once
#include "exact_bands.cuh"
#include "exact_product_buckets.cuh"
#include "exact_refilled.cuh"
#include "exact_sums.cuh"
#include "exact_words.cuh"

// The choices in their order, and how many exponents the tiles of all but the last may have.
template <class T, int TERMS, int CHOICE, int THREADS>
struct Chosen;

template <class T, int TERMS, int THREADS>
struct Chosen<T, TERMS, 0, THREADS> {
    using Type = Sum<T, TERMS, THREADS>;
};
template <int THREADS>
struct Chosen<bfloat16, SQUARES, 1, THREADS> {
    using Type = SquareBucketSum<bfloat16, THREADS>;
};
template <int THREADS>
struct Chosen<bfloat16, MOMENTS, 1, THREADS> {
    using Type = MomentBucketSum<bfloat16, THREADS>;
};
template <int THREADS>
struct Chosen<float32, SQUARES, 1, THREADS> {
    using Type = BandSum<float32, 0, 128, THREADS>;
};
template <int THREADS>
struct Chosen<float32, SQUARES, 2, THREADS> {
    using Type = SquareBucketSum<float32, THREADS>;
};
template <int THREADS>
struct Chosen<float32, MOMENTS, 1, THREADS> {
    using Type = BandSum<float32, 2, 72, THREADS>;
};
template <int THREADS>
struct Chosen<float32, MOMENTS, 2, THREADS> {
    using Type = BandSum<float32, 3, 120, THREADS>;
};
template <int THREADS>
struct Chosen<float32, MOMENTS, 3, THREADS> {
    using Type = MomentBucketSum<float32, THREADS>;
};
template <int THREADS>
struct Chosen<float64, SQUARES, 0, THREADS> {
    using Type = BandSum<float64, 0, 112, THREADS>;
};
template <int THREADS>
struct Chosen<float64, SQUARES, 1, THREADS> {
    using Type = SquareWordSum<THREADS>;
};
template <int THREADS>
struct Chosen<float64, MOMENTS, 0, THREADS> {
    using Type = BandSum<float64, 3, 88, THREADS>;
};
template <int THREADS>
struct Chosen<float64, MOMENTS, 1, THREADS> {
    using Type = MomentWordSum<THREADS>;
};
template <class T, int THREADS>
struct Chosen<T, PRODUCTS, 1, THREADS> {
    using Type = PairBucketSum<T, THREADS>;
};
template <int THREADS>
struct Chosen<float64, PRODUCTS, 1, THREADS> {
    using Type = PairWordSum<THREADS>;
};
template <class T, int TERMS, int CHOICE, int THREADS>
using ChosenSum = typename Chosen<T, TERMS, CHOICE, THREADS>::Type;

// Calls the sum for every tile of this block's share. A band reads ahead by refilling the tile that it has.
template <int FLIGHT, bool AHEAD, class Source, class S>
__device__ void add_tiles(const Source& source, S& sum) {
    for_each_tile<FLIGHT, AHEAD>(source, sum);
}
template <int FLIGHT, bool AHEAD, class T, int L, int FIELDS, int THREADS, int PARTS>
__device__ void add_tiles(const Vectors<T>& source, BandSum<T, L, FIELDS, THREADS, PARTS>& sum) {
    refill_each_tile<FLIGHT>(source, sum);
}

constexpr int MOST_CHOICES = 4;

// How many exponents neighbouring terms in a place may have for each choice but the last, which takes all. A band must have some
// to spare, for a tile is longer than what is looked at.
template <class T, int TERMS>
__device__ constexpr int suited(int choice) {
    constexpr int ANY = 1 << 20;
    if (TERMS == PRODUCTS) return choice > 0 ? ANY : is_same<T, float64> ? 48 : 66;
    if (is_same<T, bfloat16>) return choice > 0 ? ANY : 40;
    if (is_same<T, float32> && TERMS == SQUARES) return choice == 0 ? 32 : choice == 1 ? 100 : ANY;
    if (is_same<T, float32>) return choice == 0 ? 16 : choice == 1 ? 60 : 96;
    return choice > 0 ? ANY : TERMS == MOMENTS ? 64 : 88;
}

// How many places may have neighbours of more exponents than a choice holds.
constexpr uint32 MOST_WIDE_PLACES = 4;

// How many exponents the elements have that a warp finds at one of 32 places; below 0 where all are zero.
template <class T, bool NEGATIVE>
__device__ int binades_at(const Vectors<T, NEGATIVE>& source, int place) {
    const Vector<T> read = source[source.all / 32 * place + threadIdx.x % 32];
    Extent<T> extent;
#pragma unroll
    for (int k = 0; k < Vector<T>::size; ++k) {
        const uint32 key = key_of(widen(read[k]));
        if (key < uint32(KEY_LIMIT<T>) << KEY_SHIFT<T>) extent.include({key, key - 1});
    }
    extent = extent.of_warp();
    return extent.all_zero() ? -1 : extent.highest() - extent.lowest();
}
// At most so many of products: those of both factors together.
template <class T>
__device__ int binades_at(const VectorPairs<T>& source, int place) {
    const int of_x = binades_at(source.x, place), of_y = binades_at(source.y, place);
    return of_x < 0 || of_y < 0 ? -1 : of_x + of_y;
}

// The choice for an array or two, by neighbouring elements in 32 places, one a warp: all 32 warps of the block call this with counters
// that are 0.
template <class T, int TERMS, class Source>
__device__ uint32 choice_for(const Source& source, uint32 (&wide)[MOST_CHOICES - 1]) {
    const int binades = binades_at(source, threadIdx.x / 32);
    if (threadIdx.x % 32 == 0)
#pragma unroll
        for (int k = 0; k < MOST_CHOICES - 1; ++k)
            if (binades > suited<T, TERMS>(k)) atomicAdd(&wide[k], 1u);
    __syncthreads();
    uint32 choice = 0;
    for (const uint32 places : wide) choice += places > MOST_WIDE_PLACES;
    return choice;
}

// The elements of an array, or the pairs of two.
template <class T, int TERMS>
struct ElementsOf {
    using Source = Vectors<T>;
    static __device__ Source source(const T* x, const T*, uint64 count) { return {x, count}; }
};
template <class T>
struct ElementsOf<T, PRODUCTS> {
    using Source = VectorPairs<T>;
    static __device__ Source source(const T* x, const T* y, uint64 count) { return {x, y, count}; }
};
