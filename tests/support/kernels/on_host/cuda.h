// What the device headers need of CUDA, for a host compiler: one thread of one block at a time. Warps, shared memory
// and atomics are not here; they are tested on a GPU.
#pragma once
#include <cmath>
#include <cstring>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static
#define __launch_bounds__(...)
#define __CUDA_ARCH__ 750  // the paths without Ampere's instructions

using std::copysign;
using std::fabs;
using std::isfinite;
using std::isinf;
using std::sqrt;

struct Three {
    unsigned x;
};
static Three blockIdx{0}, threadIdx{0}, blockDim{1}, gridDim{1};

struct uint4 {
    unsigned x, y, z, w;
};
struct float2 {
    float x, y;
};

template <class To, class From>
static To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}
static unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static int __float_as_int(float x) { return bits_as<int>(x); }
static float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static long long __double_as_longlong(double x) { return bits_as<long long>(x); }
static double __longlong_as_double(long long x) { return bits_as<double>(x); }
static double rsqrt(double x) { return 1 / std::sqrt(x); }
static float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
static double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }
template <class T>
static T __ldcg(const T* at) { return *at; }
template <class T>
static T __ldg(const T* at) { return *at; }
static void __threadfence() {}
static unsigned atomicInc(unsigned* at, unsigned most) {
    const unsigned before = *at;
    *at = before >= most ? 0 : before + 1;
    return before;
}
static unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return unsigned(((unsigned long long)(high) << 32 | low) << (shift & 31) >> 32);
}
template <int N>
static void add_words(unsigned (&words)[N], const unsigned (&addend)[N], unsigned& carries) {
    unsigned long long sum = 0;
    for (int k = 0; k < N; ++k, sum >>= 32) words[k] = unsigned(sum += (unsigned long long)(words[k]) + addend[k]);
    carries = 2 * carries + unsigned(sum);
}
static void join_words(unsigned (&words)[4], unsigned long long a, unsigned long long b, unsigned long long c) {
    const unsigned __int128 sum = a + ((unsigned __int128)b << 32) + ((unsigned __int128)c << 64);
    for (int k = 0; k < 4; ++k) words[k] = unsigned(sum >> 32 * k);
}
static int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
static int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)(x)) : 64; }
static int __ffs(int x) { return __builtin_ffs(x); }
static int __ffsll(long long x) { return __builtin_ffsll(x); }
static float __ull2float_rn(unsigned long long x) { return float(x); }
static double __ull2double_rn(unsigned long long x) { return double(x); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned __int128)a * b >> 64;
}

// The two conversions that the headers ask of PTX; GCC's _Float16 rounds as IEEE 754 says.
static float float_of_float16(unsigned short bits) { return float(bits_as<_Float16>(bits)); }
static unsigned short float16_of_double(double x) { return bits_as<unsigned short>(_Float16(x)); }

template <class Part, class F>
static unsigned by_parts(unsigned a, unsigned b, F f) {
    constexpr int N = 4 / sizeof(Part);
    Part x[N], y[N];
    memcpy(x, &a, 4);
    memcpy(y, &b, 4);
    for (int k = 0; k < N; ++k) x[k] = f(x[k], y[k]);
    memcpy(&a, x, 4);
    return a;
}
static const auto lesser = [](auto x, auto y) { return x < y ? x : y; };
static const auto larger = [](auto x, auto y) { return x < y ? y : x; };
static unsigned __vmins2(unsigned a, unsigned b) { return by_parts<short>(a, b, lesser); }
static unsigned __vmaxs2(unsigned a, unsigned b) { return by_parts<short>(a, b, larger); }
static unsigned __vminu2(unsigned a, unsigned b) { return by_parts<unsigned short>(a, b, lesser); }
static unsigned __vmaxu2(unsigned a, unsigned b) { return by_parts<unsigned short>(a, b, larger); }

static int __dp4a(int a, int b, int sum) {
    for (int k = 0; k < 32; k += 8) sum += int((signed char)(a >> k)) * int((signed char)(b >> k));
    return sum;
}
static unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    for (int k = 0; k < 32; k += 8) sum += (a >> k & 255) * (b >> k & 255);
    return sum;
}
