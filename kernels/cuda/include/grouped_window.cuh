// Sums of many values at once: each has a window of exact_window.cuh whose unit suits its elements, so that its levels need no
// digits; their exact sum is rounded once (exact_nearest.cuh), or stored as plain doubles whose sum is taken by another launch.
//
// Terms are what is added to a window: elements, or the sum of a few elements of float32 in a double that did not round. With
// fewer than 2^N terms a value, over all threads that it has, the levels of these threads are added up as doubles without a
// rounding: level 1 is below 2^51 of its unit, and the last below 2^53 of the unit of all terms. So threads of one value need
// one unit, and nothing more.
//
// A value with elements that its window does not hold is marked in the result (MARK, a NaN with bits of its own), and counted;
// the host has it added up by wide_sums in sources/grouped.cu, which takes any exponents.
#pragma once
#include "exact_nearest.cuh"
#include "exact_span.cuh"

// One of the doubles that a part leaves. Those of one part lie far apart, and so need more levels.
struct term {
    float64 value;
};
template <>
struct Format<term> : FloatFormat<uint64, 53, 1024> {};
__device__ inline double widen(term x) { return x.value; }
__device__ inline void set_bits(term& out, uint64 bits) { set_bits(out.value, bits); }

template <class T>
constexpr int LEVELS = is_same<T, term> ? 5 : sizeof(T) == 8 ? 3 : 2;
template <class T, int N>
using GroupWindow = Window<LEVELS<T>, Format<T>::PRECISION - 1, 1, N>;

template <class Out>
__device__ Out mark() {
    Out out;
    set_bits(out, sizeof(Out) == 8 ? 0x7ff8'6d61'726b'6564ull : 0x7fc6'6d6bull);
    return out;
}
template <class Out>
__device__ Out nan_of() {
    Out out;
    set_bits(out, sizeof(Out) == 8 ? 0x7ff8'0000'0000'0000ull : 0x7fc0'0000ull);
    return out;
}

// Where values go, and what is done to their sums.
template <class Out>
struct Results {
    Out* values;
    uint32* marked;      // how many values are marked
    uint64 divisor;      // 0: a sum; 1: a mean of as many elements as were added; else a mean of so many
    bool omit_nan;       // values with a NaN are marked

    __device__ Out marking() const {
        atomicAdd(marked, 1u);
        return mark<Out>();
    }

    // `extra` is NaN or infinite if the value is, −0 if all elements are −0.
    template <int L>
    __device__ Out finished(const double (&level)[L], double extra, uint64 count, bool lost) const {
        if (extra != extra && omit_nan) lost = true;
        if (lost) return marking();
        if (extra != extra) return nan_of<Out>();
        if (!(fabs(extra) == 0)) return Out(extra);
        const LevelSum sum = sum_of(level);
        if (sum.sum.high == 0 && sum.sum.low == 0) return Out(count == 0 ? 0.0 : extra);
        Out out;
        if (divisor == 0)
            round_sum(out, sum);
        else if (!round_quotient(out, sum, double(divisor > 1 ? divisor : count)))
            return marking();
        return out;
    }
    template <int L>
    __device__ void put(uint64 at, const double (&level)[L], double extra, uint64 count, bool lost) const {
        values[at] = finished(level, extra, count, lost);
    }
};

__device__ constexpr int places_of(int size) { return size <= 1 ? 0 : 1 + places_of((size + 1) / 2); }

// The sum of elements of float32 in a double is exact while their exponents and their number span so little.
template <class T>
__device__ bool sums_plainly(const Extent<T>& extent, int places) {
    return sizeof(T) == 4 && extent.highest() - extent.lowest() + places <= 29;
}

// −0 for every element that is finite, and the others, added up: NaN, or an infinity, or −0.
template <class Tile>
__device__ double set_aside(Tile& tile) {
    using T = decltype(tile[0]);
    double extra = -0.0;
#pragma unroll
    for (int at = 0; at < tile.SIZE; ++at) {
        const Bits<T> magnitude = bits_of(tile[at]) & Bits<T>(~SIGN<T>);
        if (magnitude < ENDLESS<T>) continue;
        extra += double(widen(tile[at]));
        tile.make_zero(at, true);
    }
    return extra;
}

template <class Tile>
__device__ double plain_sum(const Tile& tile) {
    double sum = -0.0;
#pragma unroll
    for (int at = 0; at < tile.SIZE; ++at) sum += double(widen(tile[at]));
    return sum;
}

// LANES neighbouring lanes that have one value together. All lanes of a warp call these at the same time.
template <int LANES>
struct Together {
    static __device__ int lane() { return int(threadIdx.x % LANES); }

    template <class T>
    static __device__ Extent<T> extent(Extent<T> mine) {
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2)
            mine.include({__shfl_xor_sync(~0u, mine.largest, distance), __shfl_xor_sync(~0u, mine.smallest, distance)});
        return mine;
    }
    static __device__ double sum(double mine) {
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2) mine += __shfl_xor_sync(~0u, mine, distance);
        return mine;
    }
    static __device__ bool any(bool mine) {
        uint32 found = mine;
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2) found |= __shfl_xor_sync(~0u, found, distance);
        return found != 0;
    }
};

// Exponents above those of the first elements that a window is made for.
template <class T>
constexpr int HEADROOM = sizeof(T) == 4 ? 14 : 12;

// A value under way, of which this thread has a part.
template <class T, int N>
struct GroupSum {
    using W = GroupWindow<T, N>;
    W window;
    Gate<T> gate;  // of elements
    double extra = -0.0;
    bool started = false, lost = false;

    __device__ void start(int highest) {
        window.start(W::unit_for(highest + HEADROOM<T>));
        gate = Gate<T>(W::range(window.unit));
        started = true;
    }

    // Elements that are finite; the window has been started unless all are zero.
    template <class Tile>
    __device__ void add(const Tile& tile, const Extent<T>& extent) {
        constexpr int PLACES = places_of(Tile::SIZE);
        if (extent.all_zero()) {
            extra += plain_sum(tile);
            return;
        }
        extra += 0.0;
        if (sums_plainly(extent, PLACES) && W::range(window.unit).holds({extent.lowest(), extent.highest() + PLACES})) {
            window.add(plain_sum(tile));
        } else if (gate.admits(extent)) {
#pragma unroll
            for (int at = 0; at < tile.SIZE; ++at) window.add(widen(tile[at]));
        } else {
            lost = true;
        }
    }

    __device__ void levels(double (&level)[LEVELS<T>]) const {
#pragma unroll
        for (int k = 0; k < LEVELS<T>; ++k)
            level[k] = !started ? 0 : k < LEVELS<T> - 1 ? window.total[k] - W::bias(window.unit, k) : window.total[k];
    }
};

// What a part of a value leaves: LEVELS doubles whose exact sum, zeros and specials included, is that of its elements.
template <int L>
__device__ void as_terms(double (&level)[L], double extra) {
    bool zero = fabs(extra) == 0;
#pragma unroll
    for (int k = 0; k < L; ++k) zero = zero && level[k] == 0;
    if (!zero && fabs(extra) == 0) return;
#pragma unroll
    for (int k = 0; k < L; ++k) level[k] = extra;
}
