// The element types by the names that the catalogue uses: for each float its format, the arithmetic type that each is
// widened to, and the rounding to each float. No header of the toolkit is needed: the two half formats are bits, converted
// by a few instructions each.
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

// PRECISION counts the bits of a significand, the hidden one included; every finite value is a multiple of 2^LOWEST and
// below 2^HIGHEST in magnitude (IEEE 754-2019, table 3.5), as in kernels/dtypes.py. All three are 0 for integers. They are
// enumerators, which take no memory on the GPU.
template <class B, int P, int H>
struct FloatFormat {
    using Bits = B;
    enum : int { PRECISION = P, LOWEST = 3 - H - P, HIGHEST = H };
};
template <class T>
struct Format {
    enum : int { PRECISION = 0, LOWEST = 0, HIGHEST = 0 };
};
template <>
struct Format<float16> : FloatFormat<uint16, 11, 16> {};
template <>
struct Format<bfloat16> : FloatFormat<uint16, 8, 128> {};
template <>
struct Format<float32> : FloatFormat<uint32, 24, 128> {};
template <>
struct Format<float64> : FloatFormat<uint64, 53, 1024> {};

template <class T>
constexpr bool is_real = Format<T>::PRECISION > 0;

// Exact conversions: every value of the element type is a value of the wider type.
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

// Roundings of a double to each float, once, to nearest even.
__device__ inline void round_to(float64& out, double x) { out = x; }
__device__ inline void round_to(float32& out, double x) { out = float(x); }
__device__ inline void round_to(float16& out, double x) { asm("cvt.rn.f16.f64 %0, %1;" : "=h"(out.bits) : "d"(x)); }
__device__ inline void round_to(bfloat16& out, double x) {
    // To a multiple of bfloat16's unit in the last place (2^-7 of the power of two below, at least 2^-133), by adding
    // and subtracting 1.5 · 2^52 of them; what is left is a bfloat16 exactly.
    const double power = __longlong_as_double(__double_as_longlong(x) & 0x7ff0000000000000ll);
    const double scaled = power * 0x1.8p45, anchor = scaled > 0x1.8p-81 ? scaled : 0x1.8p-81;
    out.bits = uint16(__float_as_uint(float(copysign((x + anchor) - anchor, x))) >> 16);
}

// A float by its bits, which are the lowest of a word.
__device__ inline void set_bits(float64& out, uint64 bits) { out = __longlong_as_double(int64(bits)); }
__device__ inline void set_bits(float32& out, uint64 bits) { out = __uint_as_float(uint32(bits)); }
__device__ inline void set_bits(float16& out, uint64 bits) { out.bits = uint16(bits); }
__device__ inline void set_bits(bfloat16& out, uint64 bits) { out.bits = uint16(bits); }

template <class T, class U>
constexpr bool is_same = false;
template <class T>
inline constexpr bool is_same<T, T> = true;

template <bool FIRST, class T, class U>
struct Either {
    using Type = T;
};
template <class T, class U>
struct Either<false, T, U> {
    using Type = U;
};

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
