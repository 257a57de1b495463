// The element types by the names the catalogue uses, and the arithmetic type that each is widened to. No header of the
// toolkit is needed: the two half formats are bits, converted by one instruction each.
#pragma once

using int8 = signed char;
using int16 = short;
using int32 = int;
using int64 = long long;
using int128 = __int128;
using uint8 = unsigned char;
using uint16 = unsigned short;
using uint32 = unsigned int;
using uint64 = unsigned long long;
using uint128 = unsigned __int128;
using float32 = float;
using float64 = double;

struct float16 {
    uint16 bits;
};
struct bfloat16 {
    uint16 bits;
};
struct boolean {  // NumPy's bool: true is any byte but 0
    uint8 byte;
};

// Exact conversions: every value of the element type is one of the wider type.
__device__ inline float widen(float16 x) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}
__device__ inline float widen(bfloat16 x) { return __uint_as_float(uint32(x.bits) << 16); }
__device__ inline float widen(float32 x) { return x; }
__device__ inline double widen(float64 x) { return x; }
__device__ inline int32 widen(int8 x) { return x; }
__device__ inline int32 widen(int16 x) { return x; }
__device__ inline int32 widen(int32 x) { return x; }
__device__ inline int64 widen(int64 x) { return x; }
__device__ inline uint32 widen(uint8 x) { return x; }
__device__ inline uint32 widen(uint16 x) { return x; }
__device__ inline uint32 widen(uint32 x) { return x; }
__device__ inline uint64 widen(uint64 x) { return x; }
__device__ inline uint32 widen(boolean x) { return x.byte != 0; }

template <class T, class U>
constexpr bool is_same = false;
template <class T>
inline constexpr bool is_same<T, T> = true;

template <class T>
using Wide = decltype(widen(T{}));

template <class T>
__device__ constexpr bool is_nan(T x) {
    return x != x;  // never, for integers
}

__device__ inline uint32 magnitude(int32 x) { return x < 0 ? 0u - uint32(x) : uint32(x); }
__device__ inline uint64 magnitude(int64 x) { return x < 0 ? 0ull - uint64(x) : uint64(x); }
__device__ inline uint32 magnitude(uint32 x) { return x; }
__device__ inline uint64 magnitude(uint64 x) { return x; }
__device__ inline float magnitude(float x) { return fabsf(x); }
__device__ inline double magnitude(double x) { return fabs(x); }
