// Exact sums of float64, of their squares and of products of two, whatever their exponents: each thread has a column of words of 32 bits in shared
// memory, which are one long integer. An element's exponent field alone says to which words its bits are added, and a carry goes
// to the next words. There is no window that data could leave, and nothing is emptied before the end.
//
// Exactness: a finite double is m · 2^(f − 1075) with f ≥ 1 and m below 2^53. It takes three words from place f on, a
// product five from the sum of both places on; a unit of word 0 is thus 2^−1075, or 2^−2150 of products. Words above the highest that an element reaches
// hold the sums of 2^60 elements. Signed sums are modulo 2^(32 · SIZE) and begin in the middle: at 2^31 in every word, so that few
// elements carry to words above theirs. At the end, blocks add up the words of their threads and take away what they began with.
//
// Words k of all threads lie side by side: no two threads of a warp meet in a bank, and no thread needs atomics. A square reads and
// writes 40 bytes of shared memory, and a multiprocessor can do that more often than memory brings elements.
#pragma once
#include "exact_dot.cuh"

// words += addend, each with its lowest word first. The carry out of the last word becomes the lowest bit of `carries`, whose bits
// move up for it.
__device__ inline void add_carrying(uint32 (&w)[3], const uint32 (&a)[3], uint32& carries) {
    asm("add.cc.u32 %0, %0, %4; addc.cc.u32 %1, %1, %5; addc.cc.u32 %2, %2, %6; addc.u32 %3, %3, %3;" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(carries) : "r"(a[0]), "r"(a[1]), "r"(a[2]));
}
__device__ inline void add_carrying(uint32 (&w)[4], const uint32 (&a)[4], uint32& carries) {
    asm("add.cc.u32 %0, %0, %5; addc.cc.u32 %1, %1, %6; addc.cc.u32 %2, %2, %7; addc.cc.u32 %3, %3, %8; addc.u32 %4, %4, %4;" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3]), "+r"(carries) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
}
__device__ inline void add_carrying(uint32 (&w)[5], const uint32 (&a)[5], uint32& carries) {
    asm("add.cc.u32 %0, %0, %6; addc.cc.u32 %1, %1, %7; addc.cc.u32 %2, %2, %8; addc.cc.u32 %3, %3, %9; addc.cc.u32 %4, %4, %10; addc.u32 %5, %5, %5;" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3]), "+r"(w[4]), "+r"(carries) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]));
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

// Adds the four words of a product, moved up by `shift` < 32 places.
template <class Addition>
__device__ void write_product(Addition& sum, const uint32 (&w)[4], uint32 shift, uint32& carries) {
    sum.write({w[0] << shift, __funnelshift_l(w[0], w[1], shift), __funnelshift_l(w[1], w[2], shift),
               __funnelshift_l(w[2], w[3], shift), __funnelshift_l(w[3], 0, shift)}, carries);
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

    __device__ Words(char* memory, bool used)
        : memory(reinterpret_cast<uint32*>(memory)), column(reinterpret_cast<uint32*>(memory) + threadIdx.x) {
        if (!used) return;
#pragma unroll 8
        for (int k = 0; k < SIZE; ++k) column[k * THREADS] = START;
    }

    // By an offset in bytes, which takes one operation less than an index.
    __device__ uint32* word(uint32 at) const {
        return reinterpret_cast<uint32*>(reinterpret_cast<char*>(column) + at * uint32(THREADS * 4));
    }

    // The words from `at` on while an integer is added to them, or is taken away if `sign` is all ones: w − a is the complement of
    // (the complement of w) + a, of which a carry is what the difference borrows. Reading and writing are apart, so that two sums
    // wait for the memory together.
    template <int N>
    struct Addition {
        uint32* place;
        uint32 sign, words[N];

        __device__ Addition(const Words& of, uint32 at, uint32 sign) : place(of.word(at)), sign(sign) {
#pragma unroll
            for (int k = 0; k < N; ++k) words[k] = place[k * THREADS];
        }
        __device__ void write(const uint32 (&addend)[N], uint32& carries) {
#pragma unroll
            for (int k = 0; k < N; ++k) words[k] ^= sign;
            add_carrying(words, addend, carries);
#pragma unroll
            for (int k = 0; k < N; ++k) place[k * THREADS] = words[k] ^ sign;
        }
    };

    // Adds 1 to the word `at` and those above, or takes it away if `sign` is all ones. An addition leaves this to be done later.
    __device__ void carry(uint32 at, uint32 sign) const {
        uint32* above = word(at);
        if (sign)
            while ((*above)-- == 0) above += THREADS;
        else
            while (++*above == 0) above += THREADS;
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
    using Addition = typename Words<133, 2, false, THREADS>::template Addition<5>;

    __device__ Addition addition(const Fixed& m) const { return {*this, m.field >> 4, 0}; }
    __device__ static void add(Addition& sum, const Fixed& m, uint32& carries) {
        uint32 w[4];
        join(w, wide_product(m.lower, m.lower), wide_product(m.lower, 2 * m.upper), wide_product(m.upper, m.upper));
        write_product(sum, w, m.field * 2 % 32, carries);
    }
    __device__ void carry_above(const Fixed& m) const { this->carry((m.field >> 4) + 5, 0); }
};

template <int THREADS>
struct PairWords : Words<133, 2, true, THREADS> {
    using Words<133, 2, true, THREADS>::Words;
    using Addition = typename Words<133, 2, true, THREADS>::template Addition<5>;

    __device__ static uint32 sign_of(double x, double y) {
        return uint32(int32(uint64(__double_as_longlong(x) ^ __double_as_longlong(y)) >> 32) >> 31);
    }
    __device__ void add(const Fixed& a, const Fixed& b, double x, double y, uint32& carries) const {
        const uint32 place = a.field + b.field;
        Addition sum(*this, place >> 5, sign_of(x, y));
        uint32 w[4];
        join(w, wide_product(a.lower, b.lower), wide_product(a.lower, b.upper) + wide_product(a.upper, b.lower),
             wide_product(a.upper, b.upper));
        write_product(sum, w, place % 32, carries);
    }
    __device__ void carry_above(double x, double y) const {
        this->carry(((Fixed(x).field + Fixed(y).field) >> 5) + 5, sign_of(x, y));
    }
};

template <int THREADS>
struct ValueWords : Words<67, 1, true, THREADS> {
    using Words<67, 1, true, THREADS>::Words;
    using Addition = typename Words<67, 1, true, THREADS>::template Addition<3>;

    __device__ static uint32 sign_of(double x) { return uint32(int32(uint64(__double_as_longlong(x)) >> 32) >> 31); }
    __device__ Addition addition(const Fixed& m, double x) const { return {*this, m.field >> 5, sign_of(x)}; }
    __device__ static void add(Addition& sum, const Fixed& m, uint32& carries) {
        const uint32 shift = m.field % 32;
        sum.write({m.lower << shift, __funnelshift_l(m.lower, m.upper, shift), __funnelshift_l(m.upper, 0, shift)}, carries);
    }
    __device__ void carry_above(const Fixed& m, double x) const { this->carry((m.field >> 5) + 3, sign_of(x)); }
};

// Whether all elements of a tile are finite and none is zero or subnormal, by float64 comparisons, which nothing else waits for.
template <int FLIGHT>
__device__ bool all_normal(const Tile<float64, FLIGHT>& tile) {
    bool normal = true;
#pragma unroll
    for (int at = 0; at < tile.SIZE; ++at) normal = normal & (fabs(tile[at]) >= 0x1p-1022) & (fabs(tile[at]) < __longlong_as_double(0x7ff0000000000000ll));
    return normal;
}

// Squares, or values and squares. There is no branch from element to element: carries out of a tile's words are added after it.
template <bool VALUED, int THREADS>
struct WordSum {
    static constexpr int OF_VALUES = VALUED ? ValueWords<THREADS>::BYTES : 0;
    static constexpr int BYTES = OF_VALUES + SquareWords<THREADS>::BYTES;
    Specials<VALUED ? VALUES : SQUARES> specials;
    Total total;
    ValueWords<THREADS> values;
    SquareWords<THREADS> squares;

    __device__ WordSum(char* memory, const Total& total)
        : total(total), values(memory, VALUED), squares(memory + OF_VALUES * THREADS, true) {}

    template <int FLIGHT>
    __device__ void operator()(Tile<float64, FLIGHT>& tile) {
        if (__all_sync(~0u, all_normal(tile))) {
            specials.flags |= VALUED ? NOT_NEGATIVE_ZERO : 0;
            add<true>(tile);
            return;
        }
        if (!all_finite(tile)) specials.set_aside(tile);
        specials.look(tile);
        add<false>(tile);
    }

    template <bool NORMAL, int FLIGHT>
    __device__ void add(const Tile<float64, FLIGHT>& tile) {
        static_assert(Tile<float64, FLIGHT>::SIZE <= 32);
        uint32 of_values = 0, of_squares = 0;  // the carries; that of the last element is the lowest bit
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const Fixed m = NORMAL ? Fixed::of_normal(tile[at]) : Fixed(tile[at]);
            if constexpr (VALUED) {
                auto value = values.addition(m, tile[at]);
                auto square = squares.addition(m);
                values.add(value, m, of_values);
                squares.add(square, m, of_squares);
            } else {
                auto square = squares.addition(m);
                squares.add(square, m, of_squares);
            }
        }
        for (uint32 any = of_values | of_squares; any; any &= any - 1) {
            const int bit = 31 - __clz(any & -any);
            double x = tile[tile.SIZE - 1];
#pragma unroll
            for (int at = 0; at < tile.SIZE - 1; ++at) x = tile.SIZE - 1 - at == bit ? tile[at] : x;
            if constexpr (VALUED)
                if (of_values >> bit & 1) values.carry_above(Fixed(x), x);
            if (of_squares >> bit & 1) squares.carry_above(Fixed(x));
        }
    }

    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        if constexpr (VALUED) values.fold(total);
        squares.fold(VALUED ? total.second() : total);
    }
};
template <int THREADS>
using SquareWordSum = WordSum<false, THREADS>;
template <int THREADS>
using MomentWordSum = WordSum<true, THREADS>;

// Products of two arrays.
template <int THREADS>
struct PairWordSum {
    static constexpr int BYTES = PairWords<THREADS>::BYTES;
    PairSpecials specials;
    Total total;
    PairWords<THREADS> products;

    __device__ PairWordSum(char* memory, const Total& total) : total(total), products(memory, true) {}

    template <int FLIGHT>
    __device__ void operator()(TilePair<float64, FLIGHT>& pair) {
        auto &x = pair.x, &y = pair.y;
        static_assert(Tile<float64, FLIGHT>::SIZE <= 32);
        if (__all_sync(~0u, all_normal(x) && all_normal(y))) {
            specials.flags |= NOT_NEGATIVE_ZERO;
            add<true>(x, y);
            return;
        }
        if (!all_finite(x) || !all_finite(y)) specials.set_aside(x, y);
        specials.look(x, y);
        add<false>(x, y);
    }

    template <bool NORMAL, int FLIGHT>
    __device__ void add(const Tile<float64, FLIGHT>& x, const Tile<float64, FLIGHT>& y) {
        uint32 carries = 0;  // that of the last pair is the lowest bit
#pragma unroll
        for (int at = 0; at < x.SIZE; ++at) {
            if constexpr (NORMAL)
                products.add(Fixed::of_normal(x[at]), Fixed::of_normal(y[at]), x[at], y[at], carries);
            else
                products.add(Fixed(x[at]), Fixed(y[at]), x[at], y[at], carries);
        }
        for (; carries; carries &= carries - 1) {
            const int bit = 31 - __clz(carries & -carries);
            double a = x[x.SIZE - 1], b = y[x.SIZE - 1];
#pragma unroll
            for (int at = 0; at < x.SIZE - 1; ++at)
                if (x.SIZE - 1 - at == bit) {
                    a = x[at];
                    b = y[at];
                }
            products.carry_above(a, b);
        }
    }

    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        products.fold(total);
    }
};
