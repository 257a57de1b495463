// Sums of squares, alone or with values, of which the data choose one: a launch before looks at some elements. All are exact, so the
// choice is only one of speed.
#pragma once
#include "exact_squares.cuh"
#include "exact_sums.cuh"
#include "exact_words.cuh"

// Choice 0 is the sum for data of few exponents; a larger one holds more. Of float32 there are two for moments.
template <int TERMS, int CHOICE, int THREADS>
using WideSquares32 =
    typename Either<TERMS == SQUARES, SquareBucketSum<THREADS>,
                    typename Either<CHOICE == 1, MomentMixedSum<THREADS>, MomentBucketSum<THREADS>>::Type>::Type;
template <int TERMS, int THREADS>
using WideSquares64 = typename Either<TERMS == SQUARES, SquareWordSum<THREADS>, MomentWordSum<THREADS>>::Type;
template <class T, int TERMS, int CHOICE, int THREADS>
using ChosenSum =
    typename Either<CHOICE == 0, Sum<T, TERMS, THREADS>,
                    typename Either<is_same<T, float32>, WideSquares32<TERMS, CHOICE, THREADS>,
                                    WideSquares64<TERMS, THREADS>>::Type>::Type;

// How many places may have neighbours of more exponents than a choice holds.
constexpr uint32 MOST_WIDE_PLACES = 4;

// The choice for an array, by neighbouring elements in 32 places, one a warp: all 32 warps of the block call this with counters that
// are 0.
template <int TERMS, class T>
__device__ uint32 choice_for(const Vectors<T>& source, uint32 (&wide)[2]) {
    const Vector<T> read = source[source.all / 32 * (threadIdx.x / 32) + threadIdx.x % 32];
    Extent<T> extent;
#pragma unroll
    for (int k = 0; k < Vector<T>::size; ++k) {
        const uint32 key = key_of(read[k]);
        if (key < uint32(KEY_LIMIT<T>) << KEY_SHIFT<T>) extent.include({key, key - 1});
    }
    extent = extent.of_warp();
    // The exponents that the windows of choices 0 and 1 hold; where there are no windows in a choice it holds all.
    const int held[2] = {is_same<T, float32> ? 43 : 39, is_same<T, float32> && TERMS == MOMENTS ? 64 : 1 << 20};
    if (threadIdx.x % 32 == 0 && !extent.all_zero())
#pragma unroll
        for (int k = 0; k < 2; ++k)
            if (extent.highest() - extent.lowest() > held[k]) atomicAdd(&wide[k], 1u);
    __syncthreads();
    return (wide[0] > MOST_WIDE_PLACES) + (wide[1] > MOST_WIDE_PLACES);
}
