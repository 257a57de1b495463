// The element formulas of kernels/generate/plan.py, operation by operation as kernels/generate/compiled.py has them, so
// that a seed names the same bits here and there: only +, −, ×, ÷ and sqrt in float64, none fused (--fmad=false).
#pragma once
#include "philox.cuh"

// The fields of kernels.generate.plan.Plan; the numbers of Method are those of its Formula.
struct Plan {
    uint64 seed;
    double a, b, c;
    uint64 low, span, period, third;
};

enum Method {
    CONSTANT,
    ARANGE,
    MODULO,
    UNIFORM,
    NORMAL,
    LOGNORMAL,
    MIXED,
    PATHOLOGICAL,
    ALL_EXPONENTS,
    ILL_CONDITIONED
};

// 53 bits of two words as a multiple of 2^-53 in [0, 1).
__device__ inline double unit(uint32 high, uint32 low) { return double(int64(pair(high, low) >> 11)) * 0x1p-53; }

// ln v for a normal v > 0.
__device__ inline double logarithm(double v) {
    const int64 bits = __double_as_longlong(v);
    double m = __longlong_as_double((bits & 0x000fffffffffffffll) | 0x3ff0000000000000ll);
    double e = double((bits >> 52) - 1023);
    const bool large = m >= 0x1.6a09e667f3bcdp+0;  // √2
    m = large ? m * 0.5 : m;
    e = large ? e + 1.0 : e;
    const double f = m - 1.0;
    const double s = f / (2.0 + f);
    const double t = s * s;
    double p = 1.0 / 19 + t * (1.0 / 21);
    p = 1.0 / 17 + t * p;
    p = 1.0 / 15 + t * p;
    p = 1.0 / 13 + t * p;
    p = 1.0 / 11 + t * p;
    p = 1.0 / 9 + t * p;
    p = 1.0 / 7 + t * p;
    p = 1.0 / 5 + t * p;
    p = 1.0 / 3 + t * p;
    p = 1.0 + t * p;
    return e * 0x1.62e42fefa39efp-1 + (s + s) * p;
}

// cos 2πu for u in [0, 1).
__device__ inline double cosine_of_turn(double u) {
    const double x = 0x1.921fb54442d18p+2 * (fabs(u - 0.5) - 0.25);
    const double t = x * x;
    double p = -1.0 / 121645100408832000.0 + t * (1.0 / 51090942171709440000.0);  // 19!, 21!
    p = 1.0 / 355687428096000.0 + t * p;
    p = -1.0 / 1307674368000.0 + t * p;
    p = 1.0 / 6227020800.0 + t * p;
    p = -1.0 / 39916800.0 + t * p;
    p = 1.0 / 362880.0 + t * p;
    p = -1.0 / 5040.0 + t * p;
    p = 1.0 / 120.0 + t * p;
    p = -1.0 / 6.0 + t * p;
    return x + x * (t * p);
}

// e^y for |y| < 1100.
__device__ inline double exponential(double y) {
    const double shifted = y * 0x1.71547652b82fep+0 + 0x1.8p52;
    const double k = shifted - 0x1.8p52;
    const double r = (y - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
    double p = 1.0 / 6227020800.0 + r * (1.0 / 87178291200.0);  // 13!, 14!
    p = 1.0 / 479001600.0 + r * p;
    p = 1.0 / 39916800.0 + r * p;
    p = 1.0 / 3628800.0 + r * p;
    p = 1.0 / 362880.0 + r * p;
    p = 1.0 / 40320.0 + r * p;
    p = 1.0 / 5040.0 + r * p;
    p = 1.0 / 720.0 + r * p;
    p = 1.0 / 120.0 + r * p;
    p = 1.0 / 24.0 + r * p;
    p = 1.0 / 6.0 + r * p;
    p = 1.0 / 2.0 + r * p;
    p = 1.0 + r * p;
    p = 1.0 + r * p;
    const int64 whole = int64(k), half = whole >> 1;
    return (p * __longlong_as_double(half + 1023 << 52)) * __longlong_as_double(whole - half + 1023 << 52);
}

// One normal an index: the cosine half of Box and Muller's pair.
__device__ inline double gauss(Words w) {
    const double v = double(int64((pair(w.w2, w.w3) >> 11) + 1)) * 0x1p-53;
    return sqrt(-2.0 * logarithm(v)) * cosine_of_turn(unit(w.w0, w.w1));
}

// The formula of a float element in float64; the dtype's own rounding follows.
template <int METHOD>
__device__ double real_element(const Plan& plan, uint64 i) {
    if constexpr (METHOD == CONSTANT) return plan.a;
    if constexpr (METHOD == ARANGE) return double(int64(i));
    if constexpr (METHOD == MODULO) return double(int64(i % plan.period)) * plan.a;
    if constexpr (METHOD == PATHOLOGICAL) return i % 3 == 0 ? 1e8 : i % 3 == 1 ? 1.0 : -1e8;
    if constexpr (METHOD == ILL_CONDITIONED) {
        const bool plus = i < plan.third, minus = !plus && i < 2 * plan.third;
        const Words w = philox(minus ? i - plan.third : i, plan.seed);
        const double x = 1.0 + unit(w.w0, w.w1), scaled = plan.a * x;
        return plus ? scaled : minus ? -scaled : x;
    }
    const Words w = philox(i, plan.seed);
    if constexpr (METHOD == UNIFORM) {
        const double x = plan.a + plan.b * unit(w.w0, w.w1);
        return x < plan.c ? x : plan.c;
    }
    if constexpr (METHOD == NORMAL) return plan.a + plan.b * gauss(w);
    if constexpr (METHOD == LOGNORMAL) return exponential(plan.a + plan.b * gauss(w));
    if constexpr (METHOD == MIXED) {
        const double u = unit(w.w0, w.w1);
        return w.w3 & 1 ? 1e6 + plan.a * u : 1e-3 + plan.b * u;
    }
    return 0.0;
}

// The formula of an integer element modulo 2^64, of which the dtype keeps the low bits.
template <int METHOD>
__device__ uint64 whole_element(const Plan& plan, uint64 i) {
    if constexpr (METHOD == CONSTANT) return plan.low;
    if constexpr (METHOD == ARANGE) return i;
    if constexpr (METHOD == MODULO) return i % plan.period * plan.low;
    if constexpr (METHOD == PATHOLOGICAL) return i % 3 == 0 ? 100000000ull : i % 3 == 1 ? 1ull : 0ull - 100000000ull;
    if constexpr (METHOD == UNIFORM) {
        const Words w = philox(i, plan.seed);
        const uint64 word = pair(w.w0, w.w1);
        return plan.low + (plan.span ? __umul64hi(word, plan.span) : word);  // a span of 0 stands for 2^64
    }
    return 0;
}

// Bits of a float of WIDTH bits, FRACTION of them significand, with its exponent field below the span.
template <int WIDTH, int FRACTION>
__device__ uint64 float_bits(const Plan& plan, uint64 i) {
    const Words w = philox(i, plan.seed);
    const uint64 sign = uint64(w.w1 >> 31) << (WIDTH - 1), exponent = (w.w0 * plan.span >> 32) << FRACTION;
    return sign | exponent | (pair(w.w2, w.w3) & (1ull << FRACTION) - 1);
}
