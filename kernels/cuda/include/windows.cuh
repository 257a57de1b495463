// Values of windows that move along an array: sums are differences of running sums, integers of fixed point modulo 2^128 or 2^64, so that
// what leaves a window is taken away exactly.
#pragma once
#include "sorting_keys.cuh"
#include "vector.cuh"
#include "window_extremes.cuh"

constexpr int ITEMS = 8;  // neighbouring elements of a thread

template <class U>
__device__ U shuffle_up(U x, int distance) {
    if constexpr (sizeof(U) == 16) {
        const uint64 low = __shfl_up_sync(~0u, uint64(x), distance), high = __shfl_up_sync(~0u, uint64(x >> 64), distance);
        return U(high) << 64 | low;
    } else {
        return __shfl_up_sync(~0u, x, distance);
    }
}

// The sum of what the threads before this one have, and that of the whole block. All threads must take part.
template <class U>
__device__ U sum_before(U mine, U* shared, U& all) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    U up_to = mine;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const U left = shuffle_up(up_to, distance);
        if (lane >= distance) up_to += left;
    }
    __syncthreads();  // what was there is read
    if (lane == 31) shared[warp] = up_to;
    __syncthreads();
    U before = 0;
    all = 0;
    for (int k = 0; k < warps; ++k) {
        if (k == warp) before = all;
        all += shared[k];
    }
    return before + up_to - mine;
}

// A finite element as a multiple of 2^lowest, or an integer. NaN and infinities are 0, and counted apart.
struct FixedPoint {
    int lowest;
    uint32 magnitudes;
    using Sum = uint128;

    template <class T>
    __device__ uint128 of(T x) const {
        if constexpr (is_real<T>) {
            using Bits = SortingKey<T>;
            constexpr int fraction = Format<T>::PRECISION - 1;
            constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(T) - 1)), hidden = Bits(Bits(1) << fraction), infinity = Bits(Bits(sign - 1) / hidden * hidden);
            Bits bits;
            memcpy(&bits, &x, sizeof(T));
            const Bits size = Bits(bits & Bits(sign - 1));
            if (size >= infinity || size == 0) return 0;
            const int field = int(size / hidden);
            const uint64 significand = field ? uint64(size & Bits(hidden - 1)) | hidden : uint64(size);
            const int shift = Format<T>::LOWEST + (field ? field - 1 : 0) - lowest;
            uint128 units;
            if constexpr (fraction < 32) {  // two words of 32 bits, put in their place
                const uint64 words = shift >= 0 ? significand << (shift % 32) : significand >> -shift;
                const int place = shift >= 0 ? shift / 32 : 0;
                const uint64 low = place == 0 ? words : place == 1 ? words << 32 : 0;
                const uint64 high = place == 0 ? 0 : place == 1 ? words >> 32 : place == 2 ? words : words << 32;
                units = uint128(high) << 64 | low;
            } else {
                units = shift >= 0 ? uint128(significand) << shift : uint128(significand >> -shift);
            }
            return (bits & sign) && !magnitudes ? ~units + 1 : units;
        } else {
            const auto wide = widen(x);
            if (magnitudes) return magnitude(wide);
            return wide < decltype(wide)(0) ? ~uint128(magnitude(wide)) + 1 : uint128(magnitude(wide));
        }
    }
};

// Whether an element is counted: 1 or 0. With `omit` no NaN is.
enum : uint32 { IS_NAN = 0, IS_POSITIVE_INFINITY = 1, IS_NEGATIVE_INFINITY = 2, IS_NOT_NEGATIVE_ZERO = 3, IS_NONZERO = 4, IS_INFINITY = 5 };
struct Marks {
    uint32 which, omit;
    using Sum = uint64;

    template <class T>
    __device__ uint64 of(T x) const {
        const auto wide = widen(x);
        using W = decltype(widen(x));
        if constexpr (is_real<T>) {
            const bool nan = wide != wide, negative = copysign(W(1), wide) < W(0), infinite = !nan && wide - wide != W(0);
            switch (which) {
                case IS_NAN: return nan;
                case IS_POSITIVE_INFINITY: return infinite && !negative;
                case IS_NEGATIVE_INFINITY: return infinite && negative;
                case IS_INFINITY: return infinite;
                case IS_NOT_NEGATIVE_ZERO: return !nan && !(wide == W(0) && negative);
            }
            return wide != W(0) && !(omit && nan);
        } else {
            return which == IS_NONZERO && wide != W(0);
        }
    }
};

// The terms of a thread's elements, and 0 behind the last one. Elements lie from a multiple of 16 bytes on, or are read one by one.
template <class T, class Term, class U = typename Term::Sum>
__device__ void read_terms(const T* data, uint64 first, uint64 count, const Term& term, U (&terms)[ITEMS]) {
    constexpr int VECTORS = ITEMS / Vector<T>::size;
    if constexpr (VECTORS > 0) {
        if (first + ITEMS <= count && reinterpret_cast<uint64>(data) % 16 == 0) {
            Vector<T> read[VECTORS];
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) read[k] = Vector<T>::load_kept(data + first + k * Vector<T>::size);
#pragma unroll
            for (int k = 0; k < ITEMS; ++k) terms[k] = term.of(read[k / Vector<T>::size][k % Vector<T>::size]);
            return;
        }
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) terms[k] = first + k < count ? term.of(data[first + k]) : U(0);
}

// Each block adds up a tile of ITEMS · blockDim.x neighbouring elements.
template <class T, class Term, class U = typename Term::Sum>
__device__ void sum_tiles_of(const T* data, uint64 count, const Term& term, U* shared, U* totals) {
    const uint64 first = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) * ITEMS;
    U terms[ITEMS], sum = 0, all;
    read_terms(data, first, count, term, terms);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) sum += terms[k];
    sum_before(sum, shared, all);
    if (threadIdx.x == 0) totals[blockIdx.x] = all;
}

// One block makes the sums of tiles those of all tiles before.
template <class U>
__device__ void sum_tiles_before_of(U* totals, uint64 tiles, U* shared) {
    U carried = 0;
    for (uint64 first = 0; first < tiles; first += blockDim.x) {
        const uint64 at = first + threadIdx.x;
        const U mine = at < tiles ? totals[at] : U(0);
        U all;
        const U before = sum_before(mine, shared, all);
        if (at < tiles) totals[at] = carried + before;
        carried += all;
    }
}

// running[i] = the sum of the first i elements, for i from 0 to count. Sums go through `turned`, where those of a thread are 9 apart from the
// next one's, so that neighbouring threads write neighbouring ones.
template <class T, class Term, class U = typename Term::Sum>
__device__ void running_sums_of(const T* data, uint64 count, const Term& term, const U* totals, U* shared, U* turned, U* running) {
    if (blockIdx.x == 0 && threadIdx.x == 0) running[0] = 0;
    const uint64 tile = uint64(blockIdx.x) * blockDim.x * ITEMS;
    U terms[ITEMS], sum = 0, all;
    read_terms(data, tile + threadIdx.x * ITEMS, count, term, terms);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) sum += terms[k];
    U up_to = totals[blockIdx.x] + sum_before(sum, shared, all);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) turned[threadIdx.x * (ITEMS + 1) + k] = up_to += terms[k];
    __syncthreads();
    for (uint32 k = threadIdx.x; k < blockDim.x * ITEMS && tile + k < count; k += blockDim.x) running[tile + k + 1] = turned[k + k / ITEMS];
}

// 2^exponent, of a normal number.
__device__ inline double power_of_two(int exponent) { return __longlong_as_double(int64(exponent + 1023) << 52); }

// units · 2^exponent, and with `more` something below one unit, rounded once to a T, as a double.
template <class T>
__device__ double rounded_units(uint128 units, bool more, int exponent) {
    if (units == 0) return 0;
    const uint64 high = uint64(units >> 64);
    const int up = high ? __clzll(int64(high)) : 64 + __clzll(int64(units)), last = exponent + 64 - up;
    units <<= up;
    const uint64 head = uint64(units >> 64) | uint64(more || uint64(units) != 0);  // its lowest bit says that something lies below
    int unit = last + 64 - Format<T>::PRECISION;
    if (unit < Format<T>::LOWEST) unit = Format<T>::LOWEST;
    const int dropped = unit - last;  // at least 11
    if (dropped > 64) return 0;
    uint64 kept = dropped < 64 ? head >> dropped : 0;
    const uint64 rest = dropped < 64 ? head & ((uint64(1) << dropped) - 1) : head, half = uint64(1) << (dropped - 1);
    kept += rest > half || (rest == half && (kept & 1));
    if (unit > 1023) return __longlong_as_double(0x7ff0000000000000ll);
    const double value = unit < -1000 ? double(kept) * power_of_two(unit + 1000) * power_of_two(-1000) : double(kept) * power_of_two(unit);
    return Format<T>::HIGHEST < 1024 && value >= power_of_two(Format<T>::HIGHEST < 1024 ? Format<T>::HIGHEST : 0) ? __longlong_as_double(0x7ff0000000000000ll) : value;
}

// units · 2^exponent, rounded once to a T that the processor rounds integers to, of a sum of multiples of a T's least unit: what is below the
// least normal T is such a multiple itself, and needs no rounding.
template <class T>
__device__ double rounded_multiple(uint128 units, int exponent) {
    uint64 head = uint64(units >> 64);
    const uint64 low = uint64(units);
    if (head) {
        const int up = __clzll(int64(head));
        head = head << up | (low >> 1) >> (63 - up) | uint64(low << up != 0);  // its lowest bit says that something lies below
        exponent += 64 - up;
    } else {
        head = low;
    }
    if constexpr (Format<T>::PRECISION == 24) {
        const double value = double(__ull2float_rn(head)) * power_of_two(exponent);
        return value >= power_of_two(128) ? __longlong_as_double(0x7ff0000000000000ll) : value;
    } else {
        const double value = __ull2double_rn(head);
        if (exponent > 1023) return __longlong_as_double(head ? 0x7ff0000000000000ll : 0);
        return exponent < -1000 ? value * power_of_two(exponent + 1000) * power_of_two(-1000) : value * power_of_two(exponent);
    }
}

// total · 2^exponent / divisor, rounded once to a T.
template <class T>
__device__ double rounded_total(uint128 total, uint64 divisor, int exponent) {
    const bool negative = int64(total >> 64) < 0;
    uint128 units = negative ? ~total + 1 : total;
    bool more = false;
    if constexpr (Format<T>::PRECISION >= 24) {
        if (divisor <= 1) {
            const double size = rounded_multiple<T>(units, exponent);
            return negative ? -size : size;
        }
    }
    if (divisor > 1 && units != 0) {
        const uint64 high = uint64(units >> 64);
        const int up = high ? __clzll(high) : 64 + __clzll(uint64(units));
        units <<= up;
        exponent -= up;
        const uint128 quotient = units / divisor;  // of at least 64 bits, for a divisor has no more
        more = quotient * divisor != units;
        units = quotient;
    }
    const double size = rounded_units<T>(units, more, exponent);
    return negative ? -size : size;
}

// Running sums of marks, null where no element has the mark.
struct Specials {
    const uint64 *nans, *positive, *negative, *not_negative_zero;
    uint32 omit;
};
__device__ inline uint64 in_window(const uint64* running, uint64 begin, uint64 end) { return running ? running[end] - running[begin] : 0; }

// How many elements enter the window of each.
__device__ inline void window_counts_of(const Windows& windows, uint64 count, const uint64* left_out, int64* counts) {
    const uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count) return;
    uint64 begin, end;
    windows.of(at, begin, end);
    counts[at] = int64(end - begin - in_window(left_out, begin, end));
}

// The sum of each window or, where it `divides`, the mean, rounded once to an R.
template <class R>
__device__ double window_value(const uint128* running, const Specials& specials, uint64 begin, uint64 end, int lowest, uint32 divides) {
    const uint64 nans = in_window(specials.nans, begin, end), entered = end - begin - (specials.omit ? nans : 0);
    const bool up = in_window(specials.positive, begin, end) != 0, down = in_window(specials.negative, begin, end) != 0;
    if ((nans && !specials.omit) || (up && down)) return __longlong_as_double(0x7ff8000000000000ll);
    if (up || down) return __longlong_as_double(up ? 0x7ff0000000000000ll : int64(0xfff0000000000000ull));
    const uint128 total = running[end] - running[begin];
    if (total == 0) return specials.not_negative_zero && entered && !in_window(specials.not_negative_zero, begin, end) ? -0.0 : 0.0;
    return rounded_total<R>(total, divides && entered ? entered : 1, lowest);
}
template <class R>
__device__ void window_values_of(const uint128* running, const Specials& specials, const Windows& windows, uint64 count, int lowest, uint32 divides,
                                 double* values) {
    const uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count) return;
    uint64 begin, end;
    windows.of(at, begin, end);
    values[at] = window_value<R>(running, specials, begin, end, lowest, divides);
}

// The words of the sum of each window of integers, lowest first.
__device__ inline void window_words_of(const uint128* running, const Windows& windows, uint64 count, uint64* low, uint64* high) {
    const uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count) return;
    uint64 begin, end;
    windows.of(at, begin, end);
    const uint128 total = running[end] - running[begin];
    low[at] = uint64(total);
    high[at] = uint64(total >> 64);
}
__device__ inline void window_marks_of(const uint64* running, const Windows& windows, uint64 count, uint64* values) {
    const uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count) return;
    uint64 begin, end;
    windows.of(at, begin, end);
    values[at] = running[end] - running[begin];
}

// What decides whether 128 bits hold all sums: the lowest bit of all finite elements, the highest one, and marks of special elements.
struct Extents {
    int lowest, above;
    uint32 marks;  // bit k: an element has mark k of `Marks`, but bit IS_NOT_NEGATIVE_ZERO says that an element is −0
};
template <class T>
__device__ void extents_of(const T* data, uint64 count, Extents* all) {
    int lowest = 1 << 20, above = -(1 << 20);
    uint32 marks = 0;
    const auto take = [&](T x) {
        using Bits = SortingKey<T>;
        constexpr int fraction = Format<T>::PRECISION - 1;
        constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(T) - 1)), hidden = Bits(Bits(1) << fraction), infinity = Bits(Bits(sign - 1) / hidden * hidden);
        Bits bits;
        memcpy(&bits, &x, sizeof(T));
        const Bits size = Bits(bits & Bits(sign - 1));
        if (size == 0) {
            if (bits) marks |= 1u << IS_NOT_NEGATIVE_ZERO;
        } else if (size > infinity) {
            marks |= 1u << IS_NAN;
        } else if (size == infinity) {
            marks |= 1u << (bits & sign ? IS_NEGATIVE_INFINITY : IS_POSITIVE_INFINITY);
        } else {
            const int field = int(size / hidden);
            const Bits significand = field ? Bits((size & Bits(hidden - 1)) | hidden) : size;
            const int unit = Format<T>::LOWEST + (field ? field - 1 : 0);
            const int low = unit + (sizeof(T) == 8 ? __ffsll(int64(significand)) : __ffs(int(significand))) - 1, high = unit + fraction + 1;
            lowest = low < lowest ? low : lowest;
            above = high > above ? high : above;
        }
    };
    const uint64 thread = uint64(blockIdx.x) * blockDim.x + threadIdx.x, threads = uint64(gridDim.x) * blockDim.x;
    const uint64 vectors = reinterpret_cast<uint64>(data) % 16 == 0 ? count / Vector<T>::size : 0;
    for (uint64 at = thread; at < vectors; at += threads) {
        const Vector<T> read = Vector<T>::load(data + at * Vector<T>::size);
#pragma unroll
        for (int lane = 0; lane < Vector<T>::size; ++lane) take(read[lane]);
    }
    for (uint64 at = vectors * Vector<T>::size + thread; at < count; at += threads) take(data[at]);
    for (int distance = 16; distance > 0; distance /= 2) {
        const int low = __shfl_down_sync(~0u, lowest, distance), high = __shfl_down_sync(~0u, above, distance);
        lowest = low < lowest ? low : lowest;
        above = high > above ? high : above;
        marks |= __shfl_down_sync(~0u, marks, distance);
    }
    if (threadIdx.x % 32 == 0) {
        atomicMin(&all->lowest, lowest);
        atomicMax(&all->above, above);
        if (marks) atomicOr(&all->marks, marks);
    }
}
