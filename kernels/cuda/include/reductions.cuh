// The reductions: what each does with an element. A reduction names its Element and its Accumulator. An accumulator starts as
// identity(), takes elements by Reduction::add, absorbs other accumulators by merge, and leaves itself for the host by store.
#pragma once
#include "integers.cuh"
#include "packed.cuh"
#include "reals.cuh"

// The accumulators that add up, unless a strategy brings its own (Reduction::With).
template <class T, bool REAL = is_real<T>>
struct Adders {  // 8- and 16-bit integers
    using Sum = Integer64;
    using Squares = Integer128;
};
template <class T>
struct Adders<T, true> {
    using Sum = Plain<Wide<T>>;
    // The square of a float16 is exact in float32, and far from its limits; that of a float32 is exact in float64.
    using F = Format<T>;
    using Squares = Plain<typename Either<2 * F::PRECISION <= 24 && 2 * F::HIGHEST <= 64, float, double>::Type>;
};
template <>
struct Adders<int32> {
    using Sum = Integer128;
    using Squares = Integer128;
};
template <>
struct Adders<uint32> : Adders<int32> {};
template <>
struct Adders<int64> {
    using Sum = Integer128;
    using Squares = Integer192;
};
template <>
struct Adders<uint64> : Adders<int64> {};

template <class T>
constexpr bool is_short = !is_real<T> && sizeof(T) <= 2;  // sums of a vector's squares fit in 64 bits
template <class T>
constexpr bool is_int = !is_real<T> && sizeof(T) <= 4;  // sums of a vector's elements fit in 64 bits

template <class T, class A = typename Adders<T>::Sum>
struct Sum {
    using Element = T;
    using Accumulator = A;
    template <class B>
    using With = Sum<T, B>;
    static constexpr bool by_vector = is_int<T>;
    static __device__ void add(A& a, Wide<T> x, uint64) { a.add(x); }
    static __device__ void add_vector(A& a, const Vector<T>& v, uint64, bool) {
        int64 total = 0;
        if constexpr (sizeof(T) == 1) {  // four products by one, added up: one instruction
            int32 sum = 0;
#pragma unroll
            for (uint32 w : v.words) {
                if constexpr (T(-1) < T(0))
                    sum = __dp4a(int32(w), 0x01010101, sum);
                else
                    sum = int32(__dp4a(w, 0x01010101u, uint32(sum)));
            }
            total = sum;
        } else {
#pragma unroll
            for (int lane = 0; lane < Vector<T>::size; ++lane) total += widen(v[lane]);
        }
        a.add(total);
    }
};

template <class T, class A = typename Adders<T>::Sum>
struct Norm1 {
    using Element = T;
    using Accumulator = A;
    template <class B>
    using With = Norm1<T, B>;
    static constexpr bool by_vector = is_int<T>;
    static __device__ void add(A& a, Wide<T> x, uint64) { a.add(magnitude(x)); }
    static __device__ void add_vector(A& a, const Vector<T>& v, uint64, bool) {
        int64 total = 0;
#pragma unroll
        for (int lane = 0; lane < Vector<T>::size; ++lane) total += magnitude(widen(v[lane]));
        a.add(total);
    }
};

template <class T, class A = typename Adders<T>::Squares>
struct SumSquares {
    using Element = T;
    using Accumulator = A;
    template <class B>
    using With = SumSquares<T, B>;
    static constexpr bool by_vector = is_short<T>;
    static __device__ uint64 square(Wide<T> x) { return uint64(magnitude(x)) * magnitude(x); }
    static __device__ void add(A& a, Wide<T> x, uint64) {
        if constexpr (is_real<T>)
            a.add_square(x);
        else if constexpr (sizeof(T) < 8)
            a.add(square(x));
        else
            a.add(uint128(magnitude(x)) * magnitude(x));
    }
    static __device__ void add_vector(A& a, const Vector<T>& v, uint64, bool) {
        uint64 total = 0;
        if constexpr (sizeof(T) == 1) {
            uint32 sum = 0;
#pragma unroll
            for (uint32 w : v.words) {
                if constexpr (T(-1) < T(0))
                    sum = uint32(__dp4a(int32(w), int32(w), int32(sum)));
                else
                    sum = __dp4a(w, w, sum);
            }
            total = sum;
        } else {
#pragma unroll
            for (int lane = 0; lane < Vector<T>::size; ++lane) total += square(widen(v[lane]));
        }
        a.add(total);
    }
};

template <class T>
struct Prod {
    using Element = T;
    using Accumulator = Product<Wide<T>>;
    static constexpr bool by_vector = false;
    static __device__ void add(Accumulator& a, Wide<T> x, uint64) { a.add(x); }
};

template <class T, bool LARGEST>
struct Extreme {
    using Element = T;
    using Accumulator = typename Either<LARGEST, Largest<Wide<T>>, Smallest<Wide<T>>>::Type;
    static constexpr bool by_vector = true;
    static __device__ void add(Accumulator& a, Wide<T> x, uint64) { a.add(x); }
    static __device__ void add_vector(Accumulator& a, const Vector<T>& v, uint64, bool omit_nan) {
        const Wide<T> x = extreme_of<T, LARGEST>(v, omit_nan);
        if (!(omit_nan && is_nan(x))) a.add(x);
    }
};

template <class T>
struct Min : Extreme<T, false> {};
template <class T>
struct Max : Extreme<T, true> {};

template <class T>
struct NormInf {
    using Element = T;
    using Accumulator = Largest<decltype(magnitude(Wide<T>{}))>;
    static constexpr bool by_vector = false;
    static __device__ void add(Accumulator& a, Wide<T> x, uint64) { a.add(magnitude(x)); }
};

template <class T, bool LARGEST>
struct Arg {
    using Element = T;
    using Key = decltype(rank(Wide<T>{}));
    using Accumulator = Place<Key>;
    static constexpr bool by_vector = true;
    static __device__ Key key(Wide<T> x, bool omit_nan) {
        if (is_nan(x)) return omit_nan ? ~Key(0) : Key(0);
        return LARGEST ? Key(~rank(x)) : rank(x);
    }
    static __device__ void add(Accumulator& a, Wide<T> x, uint64 index) { a.add(key(x, false), index); }
    static __device__ void add_vector(Accumulator& a, const Vector<T>& v, uint64 index, bool omit_nan) {
        const Key lowest = key(extreme_of<T, LARGEST>(v, omit_nan), omit_nan);
        if (lowest < a.key) {  // rare once a few vectors are seen
            int first = 0;
#pragma unroll
            for (int lane = Vector<T>::size - 1; lane >= 0; --lane)
                if (key(widen(v[lane]), omit_nan) == lowest) first = lane;
            a.add(lowest, index + first);
        }
    }
};
template <class T>
struct ArgMin : Arg<T, false> {};
template <class T>
struct ArgMax : Arg<T, true> {};

template <class T>
struct CountNonzero {
    using Element = T;
    using Accumulator = Integer64;
    static constexpr bool by_vector = true;
    static __device__ void add(Accumulator& a, Wide<T> x, uint64) { a.add(x != 0); }
    static __device__ void add_vector(Accumulator& a, const Vector<T>& v, uint64, bool omit_nan) {
        int32 count = 0;
        if (is_real<T> && omit_nan) {
#pragma unroll
            for (int lane = 0; lane < Vector<T>::size; ++lane) {
                const Wide<T> x = widen(v[lane]);
                count += x != 0 && !is_nan(x);
            }
        } else if constexpr (sizeof(T) == 1) {
#pragma unroll
            for (uint32 w : v.words) count += nonzero_bytes(w);
        } else if constexpr (sizeof(T) == 2) {
#pragma unroll
            for (uint32 w : v.words) count += nonzero_halves<is_real<T>>(w);
        } else {  // the bits tell as well as the number, and in fewer instructions
            constexpr uint32 SIGN = is_real<T> ? 0x80000000u : 0;
            if constexpr (sizeof(T) == 4) {
#pragma unroll
                for (uint32 w : v.words) count += (w & ~SIGN) != 0;
            } else {
#pragma unroll
                for (int lane = 0; lane < 2; ++lane)
                    count += (v.words[2 * lane] | (v.words[2 * lane + 1] & ~SIGN)) != 0;
            }
        }
        a.add(count);
    }
};
