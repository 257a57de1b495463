// Values of totals of many values (grouped_states.cu), rounded by one thread each as those of whole arrays are (exact_finish.cuh).
#pragma once
#include "exact_finish.cuh"
#include "exact_members.cuh"

template <int TERMS>
struct TotalsOf {
    static constexpr bool BOTH = TERMS == MOMENTS, PRODUCTS = TERMS == SQUARES || TERMS == ::PRODUCTS;
    static constexpr bool SIGNED = TERMS == VALUES || TERMS == ::PRODUCTS;
    static constexpr int OF_PRODUCTS = Total::DIGITS + FinishRoom::PRODUCTS;
    static constexpr int LIMBS = BOTH ? Total::OF_VALUES + OF_PRODUCTS : PRODUCTS ? OF_PRODUCTS : Total::OF_VALUES;
    // Words of 32 bits that a thread works with, an odd number: threads that are at one digit meet in no bank.
    static constexpr int ROOM = (FinishRoom::bytes(LIMBS, BOTH, PRODUCTS) - 8 * LIMBS) / 4 | 1;
};

// Writes out[k] and how many elements were left out in omitted[k] for the values first … first + values − 1, whose totals are in
// `words`, and leaves those 0: the launches may be started again. With `listed`, which is null otherwise, the k-th total is that of the value listed[k], and k is this. A warp has 32 of them, and ROOM words for each thread in `memory`.
template <class Out, int TERMS>
__device__ void finish_values(uint64* words, const Members& of, uint64 first, uint64 values, uint64 finish, uint64 ddof,
                              bool omit_nan, Out* out, uint32* omitted, const int64* listed, char* memory) {
    using Of = TotalsOf<TERMS>;
    const int lane = threadIdx.x % 32;
    const uint64 from = uint64(blockIdx.x) * 32, value = from + lane;
    Ends mine[2] = {{Of::LIMBS, -1}, {Of::LIMBS, -1}};
#pragma unroll 1
    for (int k = 0; k < 32 && from + k < values; ++k) {  // all lanes look for the ends of one total together
        const uint64* const limbs = words + (from + k) * Of::LIMBS;
#pragma unroll
        for (int second = 0; second <= int(Of::BOTH); ++second) {
            const int start = Total::DIGITS + second * Total::OF_VALUES;
            const int size = (Of::BOTH && !second ? Total::OF_VALUES : Of::LIMBS - second * Total::OF_VALUES) - Total::DIGITS;
            Ends ends{Of::LIMBS, -1};
            for (int place = lane; place < size; place += 32) {
                if (limbs[start + place] == 0) continue;
                if (ends.high < 0) ends.low = place;
                ends.high = place;
            }
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) {
                const int low = __shfl_xor_sync(~0u, ends.low, distance), high = __shfl_xor_sync(~0u, ends.high, distance);
                if (low < ends.low) ends.low = low;
                if (high > ends.high) ends.high = high;
            }
            if (lane == k) mine[second] = ends;
        }
    }
    if (value >= values) return;
    uint64* const limbs = words + value * Of::LIMBS;
    const uint64 number = listed ? listed[value] : first + value, place = listed ? number : value;
    uint64 begin, count;
    of.of(number, begin, count);
    if (omit_nan) {
        omitted[place] = uint32(limbs[Total::NANS]);
        count -= limbs[Total::NANS];
        limbs[Total::NANS] = 0;
    }
    Out rounded;
    finish_total<Out, Of::BOTH, Of::PRODUCTS, Of::SIGNED>(rounded, reinterpret_cast<const int64*>(limbs), mine, finish, count,
                                                          ddof, reinterpret_cast<uint32*>(memory) + lane * Of::ROOM);
    out[place] = rounded;
    for (int k = 0; k < Of::LIMBS; ++k) limbs[k] = 0;
}
