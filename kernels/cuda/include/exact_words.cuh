// Exact sums of float64 and of their squares, whatever their exponents: each thread has a column of words of 32 bits in shared
// memory, which are one long integer. An element's exponent field alone says to which words its bits are added, and a carry goes
// to the next words. There is no window that data could leave, and nothing is emptied before the end.
//
// Exactness: a finite double is m · 2^(f − 1075) with f ≥ 1 and m below 2^53. It takes three words from place f on, its square
// five from place 2f on; a unit of word 0 is thus 2^−1075, or 2^−2150 of squares. Words above the highest that an element reaches
// hold the sums of 2^60 elements. Signed sums are modulo 2^(32 · SIZE) and begin in the middle: at 2^31 in every word, so that few
// elements carry to words above theirs. At the end, blocks add up the words of their threads and take away what they began with.
//
// Words k of all threads lie side by side: no two threads of a warp meet in a bank, and no thread needs atomics. A square reads and
// writes 40 bytes of shared memory, and a multiprocessor can do that more often than memory brings elements.
#pragma once
#include "exact_specials.cuh"
#include "exact_terms.cuh"

// words += addend, each with its lowest word first; the carry out of the last word is lost.
__device__ inline void add_carrying(uint32 (&w)[3], const uint32 (&a)[3]) {
    asm("add.cc.u32 %0, %0, %3; addc.cc.u32 %1, %1, %4; addc.u32 %2, %2, %5;" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]) : "r"(a[0]), "r"(a[1]), "r"(a[2]));
}
__device__ inline void add_carrying(uint32 (&w)[5], const uint32 (&a)[5]) {
    asm("add.cc.u32 %0, %0, %5; addc.cc.u32 %1, %1, %6; addc.cc.u32 %2, %2, %7; addc.cc.u32 %3, %3, %8; addc.u32 %4, %4, %9;" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3]), "+r"(w[4]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]));
}

// x · y by one operation, which a product of 64 bits would not be.
__device__ inline uint64 wide_product(uint32 x, uint32 y) {
    uint64 product;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(x), "r"(y));
    return product;
}

// (w[0], …, w[3]) = a + 2^32 · b + 2^64 · c, below 2^128.
__device__ inline void join(uint32 (&w)[4], uint64 a, uint64 b, uint64 c) {
    const uint32 a0 = uint32(a), a1 = uint32(a >> 32), b0 = uint32(b), b1 = uint32(b >> 32), c0 = uint32(c), c1 = uint32(c >> 32);
    w[0] = a0;
    asm("add.cc.u32 %0, %3, %4; addc.cc.u32 %1, %5, %6; addc.u32 %2, %7, 0;" : "=&r"(w[1]), "=&r"(w[2]), "=r"(w[3]) : "r"(a1), "r"(b0), "r"(b1), "r"(c0), "r"(c1));
}

// The magnitude of a finite double: (upper · 2^32 + lower) · 2^(field − 1075). Subnormals and zero have field 1.
struct Fixed {
    uint32 lower, upper, field;

    __device__ Fixed(uint32 lower, uint32 upper, uint32 field) : lower(lower), upper(upper), field(field) {}
    // Of a number that is neither zero nor subnormal.
    static __device__ Fixed of_normal(double x) {
        const uint64 bits = __double_as_longlong(x);
        const uint32 high = uint32(bits >> 32);
        uint32 upper = (high & 0xfffffu) | 1u << 20;
        asm("" : "+r"(upper));  // what is made of it shall not be made of `high` anew
        return {uint32(bits), upper, high >> 20 & 0x7ff};
    }
    __device__ explicit Fixed(double x) {
        const uint64 bits = __double_as_longlong(x);
        const uint32 high = uint32(bits >> 32) & 0x7fffffffu, hidden = 1u << 20;
        const uint32 place = (high > hidden ? high : hidden) & 0x7ff00000u;
        lower = uint32(bits);
        upper = high - place + hidden;
        field = place >> 20;
    }
};

// PLACE: how many binary places one unit of word 0 lies below that of the total.
template <int SIZE, int PLACE, bool SIGNED, int THREADS>
struct Words {
    static constexpr int BYTES = SIZE * 4;
    static constexpr uint32 START = SIGNED ? 1u << 31 : 0;
    static_assert(THREADS % 32 == 0);
    uint32 *memory, *column;

    __device__ explicit Words(char* memory)
        : memory(reinterpret_cast<uint32*>(memory)), column(reinterpret_cast<uint32*>(memory) + threadIdx.x) {
#pragma unroll 8
        for (int k = 0; k < SIZE; ++k) column[k * THREADS] = START;
    }

    // By an offset in bytes, which takes one operation less than an index.
    __device__ uint32* word(uint32 at) const {
        return reinterpret_cast<uint32*>(reinterpret_cast<char*>(column) + at * uint32(THREADS * 4));
    }

    // Adds an integer to the words from `at` on.
    template <int N>
    __device__ void add(uint32 at, const uint32 (&addend)[N]) {
        uint32* const place = word(at);
        uint32 words[N];
#pragma unroll
        for (int k = 0; k < N; ++k) words[k] = place[k * THREADS];
        const uint32 before = words[N - 1];
        add_carrying(words, addend);
#pragma unroll
        for (int k = 0; k < N; ++k) place[k * THREADS] = words[k];
        if (words[N - 1] < before) carry(place + N * THREADS);
    }

    __device__ static void carry(uint32* word) {
        while (++*word == 0) word += THREADS;
    }

    // Adds the sums of all threads to the total; all must take part.
    __device__ void fold(const Total& total) const {
        __syncthreads();
        const int lane = threadIdx.x % 32;
        for (int k = threadIdx.x / 32; k < SIZE; k += THREADS / 32) {
            int64 sum = 0;
#pragma unroll
            for (int thread = lane; thread < THREADS; thread += 32) sum += int64(memory[k * THREADS + thread]) - START;
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
            if (lane == 0) total.add(k == 0 ? sum >> PLACE : sum, k == 0 ? 0 : 32 * k - PLACE);
        }
    }
};

template <int THREADS>
struct SquareWords : Words<133, 2, false, THREADS> {
    using Words<133, 2, false, THREADS>::Words;

    __device__ void add_square(const Fixed& m) {
        const uint32 at = m.field >> 4, shift = m.field * 2 % 32;
        uint32 w[4];
        join(w, wide_product(m.lower, m.lower), wide_product(m.lower, 2 * m.upper), wide_product(m.upper, m.upper));
        this->add(at, {w[0] << shift, __funnelshift_l(w[0], w[1], shift), __funnelshift_l(w[1], w[2], shift),
                       __funnelshift_l(w[2], w[3], shift), __funnelshift_l(w[3], 0, shift)});
    }
};

// Values are added as other digits are (exact_digits.cuh), so that a window may be flushed to them.
template <int THREADS>
struct ValueWords : Words<67, 1, true, THREADS> {
    using Words<67, 1, true, THREADS>::Words;

    __device__ void reserve(int) {}

    __device__ void add(double x) { add(Fixed(x), x); }
    __device__ void add(const Fixed& m, double x) {
        const uint32 shift = m.field % 32;
        const uint32 addend[3] = {m.lower << shift, __funnelshift_l(m.lower, m.upper, shift), __funnelshift_l(m.upper, 0, shift)};
        uint32* const place = this->word(m.field >> 5);
        // w − a is the complement of (the complement of w) + a, of which a carry is what the difference borrows.
        const uint32 sign = uint32(int32(uint64(__double_as_longlong(x)) >> 32) >> 31);
        uint32 words[3];
#pragma unroll
        for (int k = 0; k < 3; ++k) words[k] = place[k * THREADS] ^ sign;
        const uint32 before = words[2];
        add_carrying(words, addend);
#pragma unroll
        for (int k = 0; k < 3; ++k) place[k * THREADS] = words[k] ^ sign;
        if (words[2] < before) {
            uint32* above = place + 3 * THREADS;
            if (sign)
                while ((*above)-- == 0) above += THREADS;
            else
                this->carry(above);
        }
    }
};

// Whether all elements of a tile are finite and none is zero or subnormal, by float64 comparisons, which nothing else waits for.
template <int FLIGHT>
__device__ bool all_normal(const Tile<float64, FLIGHT>& tile) {
    bool normal = true;
#pragma unroll
    for (int at = 0; at < tile.SIZE; ++at) normal = normal & (fabs(tile[at]) >= 0x1p-1022) & (fabs(tile[at]) < __longlong_as_double(0x7ff0000000000000ll));
    return normal;
}

template <int THREADS>
struct SquareWordSum {
    static constexpr int BYTES = SquareWords<THREADS>::BYTES;
    Specials<SQUARES> specials;
    Total total;
    SquareWords<THREADS> squares;

    __device__ SquareWordSum(char* memory, const Total& total) : total(total), squares(memory) {}

    template <int FLIGHT>
    __device__ void operator()(Tile<float64, FLIGHT>& tile) {
        if (__all_sync(~0u, all_normal(tile))) {
#pragma unroll
            for (int at = 0; at < tile.SIZE; ++at) squares.add_square(Fixed::of_normal(tile[at]));
            return;
        }
        if (!all_finite(tile)) specials.set_aside(tile);
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) squares.add_square(Fixed(tile[at]));
    }
    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        squares.fold(total);
    }
};

// Values and squares. Values of a warp's tiles that lie in a window are added up there, which takes no shared memory; other values
// go to words.
template <int THREADS>
struct MomentWordSum {
    using W = Window<VALUE_LEVELS<float64>, 52, 1, SELDOM>;
    static constexpr int BYTES = ValueWords<THREADS>::BYTES + SquareWords<THREADS>::BYTES, BUDGET = (1 << SELDOM) - 1;
    static constexpr int AGAIN = 3;  // tiles outside of the window before a warp looks for another
    Specials<VALUES> specials;
    Total total;
    ValueWords<THREADS> values;
    SquareWords<THREADS> squares;
    W window;
    Gate<float64> gate;
    int left = BUDGET, misses = AGAIN;

    __device__ MomentWordSum(char* memory, const Total& total)
        : total(total), values(memory), squares(memory + ValueWords<THREADS>::BYTES * THREADS) {
        window.start(0);
    }

    // All threads of a warp call this equally often.
    template <int FLIGHT>
    __device__ void operator()(Tile<float64, FLIGHT>& tile) {
        if (__all_sync(~0u, gate.admits(high_extent(tile)))) {  // the gate admits no zero, nor a subnormal
            if (left < tile.SIZE) flush();
            left -= tile.SIZE;
            specials.flags |= NOT_NEGATIVE_ZERO;
#pragma unroll
            for (int at = 0; at < tile.SIZE; ++at) {
                window.add(tile[at]);
                squares.add_square(Fixed::of_normal(tile[at]));
            }
            return;
        }
        if (!all_finite(tile)) specials.set_aside(tile);
        specials.look(tile);
        if (misses++ >= AGAIN) move(extent_of(tile).of_warp());
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const Fixed m(tile[at]);
            values.add(m, tile[at]);
            squares.add_square(m);
        }
    }

    // The upper halves of a tile's elements: the lower ones do not matter to the gate.
    template <int FLIGHT>
    static __device__ Extent<float64> high_extent(const Tile<float64, FLIGHT>& tile) {
        uint32 most = 0, least = ~0u;
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const uint32 high = uint32(uint64(__double_as_longlong(tile[at])) >> 32) & 0x7fffffffu;
            most = most > high ? most : high;
            least = least < high ? least : high;
        }
        return {most, least ? least - 1 : 0};  // no gate admits zero
    }

    // Moves the windows of a warp to the middle of its elements, if one holds them.
    __device__ void move(const Extent<float64>& all) {
        misses = 0;
        if (all.all_zero()) return;
        const Range range = all.range();
        const int spare = W::range(0).length() - range.length();
        if (spare < 0) return;
        flush();
        window.start(W::unit_for(range.highest + spare / 2));
        const Range held = W::range(window.unit);
        gate = Gate<float64>(Range{held.lowest < -1021 ? -1021 : held.lowest, held.highest});
    }

    __device__ void flush() {
        window.flush(values);
        left = BUDGET;
    }

    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        window.flush(values);
        values.fold(total);
        squares.fold(total.second());
    }
};
