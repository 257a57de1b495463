// Specials: the NaNs and infinities, which the finite sum does not show, and whether every term was −0.
#pragma once
#include "exact_tiles.cuh"

// The flags of kernels.exact.encoding.Flags. NaN elements are counted instead, because they may have to be left out.
enum Flag : uint32 { NAN_PRODUCT = 1, POSITIVE_INFINITY = 2, NEGATIVE_INFINITY = 4, NOT_NEGATIVE_ZERO = 8 };

template <int TERMS>
struct Specials {
    uint32 flags = 0, nans = 0;  // a thread meets fewer than 2^32 elements

    // Asks once whether there was anything but −0: after the first tile the answer is nearly always known. To be asked
    // after set_aside: a NaN may be left out.
    template <class T, int FLIGHT>
    __device__ void look(const Tile<T, FLIGHT>& tile) {
        if (TERMS != VALUES || flags & NOT_NEGATIVE_ZERO) return;
        constexpr uint32 ZERO[2] = {sizeof(T) == 8 ? 0u : uint32(SIGN<T>) * (sizeof(T) == 2 ? 0x10001u : 1u),
                                    sizeof(T) == 2 ? 0x80008000u : 0x80000000u};
        uint32 other = 0;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k)
#pragma unroll
            for (int word = 0; word < 4; ++word) other |= tile.vectors[k].words[word] ^ ZERO[word % 2];
        if (other) flags |= NOT_NEGATIVE_ZERO;
    }

    // Notes the elements that are not finite and leaves −0 in their places.
    template <class T, int FLIGHT>
    __device__ void set_aside(Tile<T, FLIGHT>& tile) {
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const Bits<T> bits = bits_of(tile[at]), magnitude = bits & Bits<T>(~SIGN<T>);
            if (magnitude < ENDLESS<T>) continue;
            if (magnitude > ENDLESS<T>)
                ++nans;
            else
                flags |= TERMS == VALUES && bits != magnitude ? NEGATIVE_INFINITY : POSITIVE_INFINITY;
            tile.make_zero(at, true);
        }
    }
};

// Whether no element is infinite or NaN: x · 0 is NaN for those and only those.
template <class T, int FLIGHT>
__device__ bool all_finite(const Tile<T, FLIGHT>& tile) {
    Wide<T> poison = 0;
#pragma unroll
    for (int at = 0; at < tile.SIZE; ++at) {
        if constexpr (sizeof(T) == 8)
            poison = __fma_rn(widen(tile[at]), 0.0, poison);
        else
            poison = __fmaf_rn(widen(tile[at]), 0.0f, poison);
    }
    return poison == 0;
}
