// The reductions of reductions.cuh to many values. Some lanes of a warp reduce a row or a segment, and a thread or several reduce a
// column. If all elements of a value were there, a reduction leaves the first KEPT of its words (outcome.cuh). If they were only a part,
// it leaves its accumulator, and another launch merges the accumulators of all parts.
#pragma once
#include "block.cuh"
#include "grouped_lanes.cuh"
#include "traverse.cuh"

// Counts NaNs, which other reductions leave out.
template <class T>
struct CountNan {
    using Element = T;
    using Accumulator = Integer64;
    static constexpr bool by_vector = false;
    static __device__ void add(Accumulator& a, Wide<T> x, uint64) { a.add(is_nan(x)); }
};

// Elements of two arrays of integers or truth values, in pairs.
template <class T, class U>
struct IntegerPair {
    T x;
    U y;
};
template <class T, class U>
__device__ IntegerPair<T, U> widen(const IntegerPair<T, U>& pair) {
    return pair;
}
template <class T, class U>
__device__ bool is_nan(const IntegerPair<T, U>&) {
    return false;
}
template <class T, class U>
struct IntegerPairs {
    const T* x;
    const U* y;
    __device__ IntegerPair<T, U> operator[](uint64 at) const { return {x[at], y[at]}; }
    __device__ IntegerPairs operator+(uint64 elements) const { return {x + elements, y + elements}; }
};

struct Signed192 : Integer192 {  // terms below 2^128 in magnitude, in two's complement
    static __device__ Signed192 identity() { return {{0, 0, 0}}; }
    __device__ void add(bool negative, uint128 magnitude) {
        const uint64 flip = negative ? ~uint64(0) : 0;
        Integer192::merge({uint64(magnitude) ^ flip, uint64(magnitude >> 64) ^ flip, flip});
        Integer192::merge({negative ? 1ull : 0ull, 0, 0});
    }
    __device__ void merge(const Signed192& other) { Integer192::merge(other); }
    __device__ void store(uint64* words) const {
        Integer192::store(words);
        words[3] = int64(high) < 0 ? ~uint64(0) : 0;
    }
};

// Adds up the products of pairs, which are below 2^64 if both elements have no more than four bytes.
template <class T, class U>
struct Dot {
    using Element = IntegerPair<T, U>;
    static constexpr bool NARROW = sizeof(T) <= 4 && sizeof(U) <= 4;
    using Accumulator = typename Either<NARROW, Integer128, Signed192>::Type;
    static __device__ void add(Accumulator& a, const Element& pair, uint64) {
        const auto x = widen(pair.x);
        const auto y = widen(pair.y);
        if constexpr (NARROW) a.add(int128(x) * int128(y));
        else a.add((x < decltype(x)(0)) != (y < decltype(y)(0)), uint128(magnitude(x)) * magnitude(y));
    }
};

// What a reduction reads: one array, or two.
template <class R>
struct ReadBy {
    using X = typename R::Element;
    using Y = X;
    using From = const X*;
    static __device__ From of(const X* x, const Y*) { return x; }
};
template <class T, class U>
struct ReadBy<Dot<T, U>> {
    using X = T;
    using Y = U;
    using From = IntegerPairs<T, U>;
    static __device__ From of(const T* x, const U* y) { return {x, y}; }
};

// The place for what is left: accumulators go to `parts`, and finished values to words.
template <class R, int KEPT>
struct Folded {
    using A = typename R::Accumulator;
    uint64* words;
    A* parts;

    __device__ void put(uint64 value, uint64 part, const A& a) const {
        if (parts) {
            parts[part] = a;
            return;
        }
        uint64 all[OUTCOME_WORDS];
        a.store(all);
#pragma unroll
        for (int k = 0; k < KEPT; ++k) words[value * KEPT + k] = all[k];
    }
};

// Folds the accumulators of LANES neighbouring lanes; the first of them gets the result. All lanes of a warp must take part.
template <int LANES, class A>
__device__ A fold_lanes(A a) {
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2) a.merge(shuffle_down(a, distance));
    return a;
}

// The accumulator of this lane for its share of neighbouring elements, which LANES lanes read together. The first element has the place
// `first` in its value.
template <class R, int LANES, class T = typename R::Element>
__device__ typename R::Accumulator fold_members(const T* data, uint64 count, uint64 first, bool omit_nan) {
    constexpr uint32 N = Vector<T>::size, STEP = LANES * N, FLIGHT = 4;
    const Piece<T> piece{data, count, first, omit_nan};
    const uint32 lane = threadIdx.x % LANES, misaligned = uint32(reinterpret_cast<uint64>(data)) % 16 / sizeof(T);
    uint64 head = misaligned ? N - misaligned : 0;
    if (head > count) head = count;
    const uint64 tail = count - (count - head) % N;
    auto a = R::Accumulator::identity();
    for (uint64 at = lane; at < head; at += LANES) visit<R>(a, piece, at);
    uint64 at = head + lane * N;
#pragma unroll 1
    for (; at + (FLIGHT - 1) * STEP < tail; at += FLIGHT * STEP) {
        Vector<T> flight[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) flight[k] = Vector<T>::load(data + at + k * STEP);
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) visit<R>(a, piece, flight[k], at + k * STEP);
    }
#pragma unroll 1
    for (; at < tail; at += STEP) visit<R>(a, piece, Vector<T>::load(data + at), at);
    for (at = tail + lane; at < count; at += LANES) visit<R>(a, piece, at);
    return a;
}

// The same of pairs, whose elements may have two widths: each lane reads single ones.
template <class R, int LANES, class T, class U>
__device__ typename R::Accumulator fold_members(const IntegerPairs<T, U>& data, uint64 count, uint64 first, bool) {
    constexpr int FLIGHT = 8;
    auto a = R::Accumulator::identity();
#pragma unroll 1
    for (uint64 at = threadIdx.x % LANES; at < count; at += FLIGHT * LANES) {
        IntegerPair<T, U> read[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k)
            if (at + k * LANES < count) read[k] = data[at + k * LANES];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k)
            if (at + k * LANES < count) R::add(a, read[k], first + at + k * LANES);
    }
    return a;
}

// Spans that are longer than spans.longest are left to other launches.
template <class R, int LANES, int KEPT>
__device__ void fold_spans_of(const typename ReadBy<R>::From& data, const Spans& spans, bool omit_nan, const Folded<R, KEPT>& folded) {
    const uint64 span = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
    uint64 begin = 0, end = 0;
    bool is_one = span < spans.count;
    if (is_one) spans.bounds(span, begin, end);
    if (end - begin > spans.longest) {
        is_one = false;
        end = begin;
    }
    const uint64 first = spans.parts > 1 ? span % spans.parts * spans.part : 0;
    const auto a = fold_lanes<LANES>(fold_members<R, LANES>(data + begin, end - begin, first, omit_nan));
    if (is_one && threadIdx.x % LANES == 0) folded.put(span, span, a);
}

// A block reduces `rows` rows of THREADS columns. If there are fewer columns than threads, several threads share a column. Part p of
// value c is number p · width + c.
template <class R, int KEPT, int THREADS, class T = typename R::Element>
__device__ void fold_columns_of(const typename ReadBy<R>::From& data, uint32 width, uint64 height, uint64 rows, bool omit_nan,
                                const Folded<R, KEPT>& folded) {
    constexpr int FLIGHT = 4;
    const uint32 bands = width < THREADS ? THREADS / width : 1, tiles = width < THREADS ? 1 : (width + THREADS - 1) / THREADS;
    const uint64 stripe = blockIdx.x / tiles, column = blockIdx.x % tiles * THREADS + (bands > 1 ? threadIdx.x % width : threadIdx.x);
    const uint32 band = bands > 1 ? threadIdx.x / width : 0;
    if (column >= width || band >= bands) return;
    const uint64 end = (stripe + 1) * rows < height ? (stripe + 1) * rows : height;
    auto a = R::Accumulator::identity();
    uint64 row = stripe * rows + band;
#pragma unroll 1
    for (; row < end; row += bands * FLIGHT) {
        T read[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k)
            if (row + k * bands < end) read[k] = data[(row + k * bands) * width + column];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) {
            if (row + k * bands >= end) break;
            const Wide<T> x = widen(read[k]);
            if (!(omit_nan && is_nan(x))) R::add(a, x, row + k * bands);
        }
    }
    folded.put(column, (stripe * bands + band) * width + column, a);
}

// Each of `groups` warps merges some parts of a value, and leaves one part. These parts lie side by side; with a single warp for each
// value, the value's words may take their place. Part p of value v is number v · apart + p · step.
template <class R, int KEPT>
__device__ void merge_parts_of(const typename R::Accumulator* made, uint64 values, uint64 apart, uint64 step, uint64 parts,
                               uint32 groups, const Folded<R, KEPT>& folded) {
    const uint64 warp = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / 32, value = warp / groups;
    auto a = R::Accumulator::identity();
    if (value < values)
        for (uint64 part = warp % groups * 32 + threadIdx.x % 32; part < parts; part += uint64(groups) * 32)
            a.merge(made[value * apart + part * step]);
    a = fold_lanes<32>(a);
    if (value < values && threadIdx.x % 32 == 0) folded.put(value, warp, a);
}
