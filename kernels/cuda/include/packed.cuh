// Elements of one and two bytes, several to a word, and the extremum of a vector found with as few instructions.
#pragma once
#include "extrema.cuh"
#include "vector.cuh"

// How many of a word's bytes are not zero: a byte's top bit after this sum says whether any of its bits was set.
__device__ inline int32 nonzero_bytes(uint32 w) {
    return __popc(((w & 0x7f7f7f7fu) + 0x7f7f7f7fu | w) & 0x80808080u);
}

// The same for halves; of a float16 or bfloat16 the sign does not count.
template <bool SIGNED_ZERO>
__device__ int32 nonzero_halves(uint32 w) {
    const uint32 sum = (w & 0x7fff7fffu) + 0x7fff7fffu;
    return __popc((SIGNED_ZERO ? sum : sum | w) & 0x80008000u);
}

template <bool LARGEST, class V>
__device__ V extreme(V a, V b) {
    if constexpr (LARGEST)
        return greatest(a, b);
    else
        return least(a, b);
}

// NaN gives way to numbers.
template <bool LARGEST, class V>
__device__ V extreme_number(V a, V b) {
    return is_nan(a) ? b : is_nan(b) ? a : extreme<LARGEST>(a, b);
}

template <class T, bool LARGEST>
struct Packed {  // one element at a time
    static __device__ Wide<T> extreme_of(const Vector<T>& v, bool omit_nan) {
        Wide<T> found = widen(v[0]);
        if (omit_nan) {
#pragma unroll
            for (int lane = 1; lane < Vector<T>::size; ++lane) found = extreme_number<LARGEST>(found, widen(v[lane]));
        } else {
#pragma unroll
            for (int lane = 1; lane < Vector<T>::size; ++lane) found = extreme<LARGEST>(found, widen(v[lane]));
        }
        return found;
    }
};

// Bytes spread over halves, two to a word, signed ones first moved to where unsigned order is theirs.
template <class T, bool LARGEST>
struct PackedBytes {
    static constexpr uint32 BIAS = T(-1) < T(0) ? 0x80808080u : 0;
    static __device__ uint32 pick(uint32 a, uint32 b) { return LARGEST ? __vmaxu2(a, b) : __vminu2(a, b); }
    static __device__ Wide<T> extreme_of(const Vector<T>& v, bool) {
        uint32 found = (v.words[0] ^ BIAS) & 0x00ff00ffu;
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            const uint32 w = v.words[word] ^ BIAS;
            found = pick(pick(found, w & 0x00ff00ffu), w >> 8 & 0x00ff00ffu);
        }
        found = pick(found, found >> 16) & 0xff;
        return widen(T(found ^ (BIAS & 0xff)));
    }
};
template <bool LARGEST>
struct Packed<int8, LARGEST> : PackedBytes<int8, LARGEST> {};
template <bool LARGEST>
struct Packed<uint8, LARGEST> : PackedBytes<uint8, LARGEST> {};

template <bool LARGEST>
struct Packed<boolean, LARGEST> {
    static __device__ uint32 extreme_of(const Vector<boolean>& v, bool) {
        int32 count = 0;
#pragma unroll
        for (uint32 w : v.words) count += nonzero_bytes(w);
        return count >= (LARGEST ? 1 : 16);
    }
};

// Halves by an operation on pairs: (a, b, with NaN giving way or not) → the pairs' extremes.
template <class T, class Pairs>
struct PackedHalves {
    static __device__ Wide<T> extreme_of(const Vector<T>& v, bool omit_nan) {
        uint32 found = v.words[0];
#pragma unroll
        for (int word = 1; word < 4; ++word) found = Pairs::pick(found, v.words[word], omit_nan);
        found = Pairs::pick(found, found >> 16 | found << 16, omit_nan);
        const uint16 half = uint16(found);
        T element;
        memcpy(&element, &half, 2);
        return widen(element);
    }
};

template <bool LARGEST>
struct SignedPairs {
    static __device__ uint32 pick(uint32 a, uint32 b, bool) { return LARGEST ? __vmaxs2(a, b) : __vmins2(a, b); }
};
template <bool LARGEST>
struct UnsignedPairs {
    static __device__ uint32 pick(uint32 a, uint32 b, bool) { return LARGEST ? __vmaxu2(a, b) : __vminu2(a, b); }
};
template <bool LARGEST>
struct Packed<int16, LARGEST> : PackedHalves<int16, SignedPairs<LARGEST>> {};
template <bool LARGEST>
struct Packed<uint16, LARGEST> : PackedHalves<uint16, UnsignedPairs<LARGEST>> {};

#if __CUDA_ARCH__ >= 800
#define PAIRS(NAME, TYPE)                                                                                            \
    template <bool LARGEST>                                                                                          \
    struct NAME {                                                                                                    \
        static __device__ uint32 pick(uint32 a, uint32 b, bool omit_nan) {                                           \
            uint32 c;                                                                                                \
            if (LARGEST && omit_nan) asm("max." TYPE " %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));                     \
            if (LARGEST && !omit_nan) asm("max.NaN." TYPE " %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));                \
            if (!LARGEST && omit_nan) asm("min." TYPE " %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));                    \
            if (!LARGEST && !omit_nan) asm("min.NaN." TYPE " %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));               \
            return c;                                                                                                \
        }                                                                                                            \
    };
PAIRS(Float16Pairs, "f16x2")
PAIRS(Bfloat16Pairs, "bf16x2")
#undef PAIRS
template <bool LARGEST>
struct Packed<float16, LARGEST> : PackedHalves<float16, Float16Pairs<LARGEST>> {};
template <bool LARGEST>
struct Packed<bfloat16, LARGEST> : PackedHalves<bfloat16, Bfloat16Pairs<LARGEST>> {};
#endif

// The smallest or largest element of a vector. A NaN wins, or with `omit_nan` counts only if there is nothing else.
template <class T, bool LARGEST>
__device__ Wide<T> extreme_of(const Vector<T>& v, bool omit_nan) {
    return Packed<T, LARGEST>::extreme_of(v, omit_nan);
}
