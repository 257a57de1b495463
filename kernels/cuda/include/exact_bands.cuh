// Exact sums of squares, alone or with values, of elements that lie in a band of exponents: each warp has a band of FIELDS
// neighbouring exponent fields, and each thread a column of buckets for the squares in it, one for every 4 fields. Values are
// added in a window of biased totals, which holds the same band. Rare elements outside are added slowly, and bands follow the data.
//
// Exactness: an element of field base + 4b + s with 0 ≤ s < 4 is t = m · 2^s, m its significand, in a unit that its bucket b alone
// decides. Its square t² is below 2^54 (float32) or 2^112 (float64), so that 2^10 or 2^16 of them stay below 2^64 or 2^128.
//
// Values: a level of unit u begins at 1.5 · 2^(52+u). With fewer than 2^N additions between two looks it stays in one binade, where
// bits are consecutive integers: the bits less those of the beginning are the sum in units of 2^u (docs/exactness.md). The last
// unit divides all elements of the band, so nothing remains below it.
//
// What leaves a warp goes to a total of the block in shared memory, by atomics of integers, and at the end to that of the launch. An
// element adds at most two numbers below 2^32 to a word, so the words hold what 2^29 elements of a block add.
#pragma once
#include "exact_span.cuh"
#include "exact_specials.cuh"
#include "exact_words.cuh"

constexpr int FIELDS_OF_BUCKET = 4;

__device__ inline uint32 unknown(uint32 x) {
    asm("" : "+r"(x));
    return x;
}

// The levels of values in a band.
template <int L, int BITS>
struct CountedWindow {
    static constexpr int N = 7, SPACING = 52 - N, BUDGET = (1 << N) - 1;
    static constexpr int BINADES = 51 - N + SPACING * (L - 1) - BITS;  // that it holds

    double total[L];
    int64 sums[L];
    int lowest;  // exponent of its elements

    __device__ int unit(int level) const { return lowest - BITS + SPACING * (L - 1 - level); }
    __device__ double bias(int level) const { return __longlong_as_double(bias_bits(level)); }
    __device__ int64 bias_bits(int level) const {
        return int64(uint64(unit(level) + 52 + 1023) << 52 | 0x8000000000000ull);
    }
    __device__ void start(int at) {
        lowest = at;
#pragma unroll
        for (int level = 0; level < L; ++level) {
            total[level] = bias(level);
            sums[level] = 0;
        }
    }
    __device__ void add(double x) {
#pragma unroll
        for (int level = 0; level < L - 1; ++level) {
            const double sum = total[level] + x, kept = sum - total[level];
            total[level] = sum;
            x -= kept;
        }
        total[L - 1] += x;
    }
    __device__ void settle() {
#pragma unroll
        for (int level = 0; level < L; ++level) {
            sums[level] += int64(__double_as_longlong(total[level])) - bias_bits(level);
            total[level] = bias(level);
        }
    }
    // The sums of a warp go to `total`; all lanes take part.
    __device__ void fold(const Total& to) {
#pragma unroll
        for (int level = 0; level < L; ++level) {
            int64 sum = sums[level];
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
            if (threadIdx.x % 32 == 0 && sum) to.add(sum, unit(level) + 1074);
            sums[level] = 0;
        }
    }
};

// The bucket of float32 is an integer of 64 bits, that of float64 of 128.
template <class T>
struct SquareBucket;

template <>
struct SquareBucket<float32> {
    uint64 sum;
    static constexpr int ORIGIN = 2148 - 300;  // the place of field 0 among the units of squares

    __device__ static uint32 high(float32 x) { return __float_as_uint(x); }
    // Adds the square of an element whose field is `shift` above that of its bucket.
    __device__ static void add(SquareBucket& bucket, uint32 shift, float32 x, uint32 hidden) {
        const uint32 t = ((high(x) & 0x7fffffu) | hidden) << shift;
        bucket.sum += uint64(t) * t;
    }
    // Of the buckets of 32 lanes side by side, from that of this lane on.
    __device__ static void fold(SquareBucket* row, int place, const Total& to) {
        const int lane = threadIdx.x % 32;
        uint64 low = 0, high = 0;
#pragma unroll 4
        for (int k = 0; k < 32; ++k) {
            SquareBucket& at = row[(k + lane) % 32];  // no two lanes in one bank
            low += uint32(at.sum);
            high += at.sum >> 32;
            at.sum = 0;
        }
        if (low | high) to.add((int128(high) << 32) + low, place);
    }
};

template <>
struct alignas(16) SquareBucket<float64> {
    uint32 words[4];
    static constexpr int ORIGIN = -2;  // in units of 2^−2148 the square of the smallest normal number begins at 0

    __device__ static uint32 high(float64 x) { return uint32(uint64(__double_as_longlong(x)) >> 32); }
    __device__ static void add(SquareBucket& bucket, uint32 shift, float64 x, uint32 hidden) {
        uint4& memory = reinterpret_cast<uint4&>(bucket);  // one access of 16 bytes
        const uint4 old = memory;
        const uint32 low = uint32(__double_as_longlong(x)), upper = (high(x) & 0xfffffu) | hidden;
        const uint32 t0 = low << shift, t1 = __funnelshift_l(low, upper, shift);
        uint32 square[4], sum[4] = {old.x, old.y, old.z, old.w}, none = 0;
        join(square, wide_product(t0, t0), wide_product(t0, 2 * t1), wide_product(t1, t1));
        add_carrying(sum, square, none);
        memory = {sum[0], sum[1], sum[2], sum[3]};
    }
    __device__ static void fold(SquareBucket* row, int place, const Total& to) {
        const int lane = threadIdx.x % 32;
        uint64 sums[4] = {};
#pragma unroll 2
        for (int k = 0; k < 32; ++k) {
            SquareBucket& at = row[(k + lane) % 32];
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                sums[word] += at.words[word];
                at.words[word] = 0;
            }
        }
        if (!(sums[0] | sums[1] | sums[2] | sums[3])) return;
        to.add((int128(sums[1]) << 32) + sums[0], place);
        to.add((int128(sums[3]) << 32) + sums[2], place + 64);
    }
};

// FIELDS exponent fields, a multiple of 4; L levels of values, 0 for squares alone.
template <class T, int L, int FIELDS, int THREADS>
struct BandSum {
    static constexpr bool VALUED = L > 0;
    using Bucket = SquareBucket<T>;
    using W = CountedWindow<VALUED ? L : 1, Format<T>::PRECISION - 1>;
    static constexpr int BUCKETS = FIELDS / FIELDS_OF_BUCKET, SHIFT = KEY_SHIFT<T> + 1;  // of doubled words, which have no sign
    static constexpr uint32 REACH = uint32(FIELDS) << SHIFT;
    static_assert(BUCKETS <= 32 && FIELDS % FIELDS_OF_BUCKET == 0 && THREADS % 32 == 0);
    static_assert(!VALUED || FIELDS <= W::BINADES, "values would leave their window");
    // Where the biases of all levels are finite, and no element is infinite.
    static constexpr int LAST_FINITE = KEY_LIMIT<T> - FIELDS, LAST_BIASED = 970 + 52 - W::SPACING * (L - 1) + 1023;
    static constexpr int LAST_FIELD = VALUED && sizeof(T) == 8 && LAST_BIASED < LAST_FINITE ? LAST_BIASED : LAST_FINITE;

    // The block's total, of values and behind them of squares, lies before the buckets.
    static constexpr int LIMBS = (VALUED ? Total::OF_VALUES : 0) + Total::DIGITS + 138;
    static constexpr int OF_TOTAL = (LIMBS * 8 + THREADS - 1) / THREADS;  // bytes a thread
    static constexpr int BYTES = BUCKETS * sizeof(Bucket) + (OF_TOTAL + 15) / 16 * 16;
    // That many times BUDGET squares fit a bucket, and are few enough for the sums of a warp's values: 2^61.
    static constexpr int SETTLED = sizeof(T) == 8 ? 32 : 8;
    static constexpr int PATIENCE = 32;  // lanes that had elements outside before the band moves
    static constexpr int HOPELESS = 32 * PATIENCE;  // and so many more if no band would hold all

    Specials<VALUED ? VALUES : SQUARES> specials;
    Total total, local;
    Bucket* column;
    W window;
    int field;  // the first of the band
    // What the compiler shall not know: it would take two operations instead of one.
    const uint32 hidden = unknown(1u << KEY_SHIFT<T>), stride = unknown(THREADS * sizeof(Bucket));
    int left = W::BUDGET, rounds = SETTLED, misses = 0;

    __device__ BandSum(char* memory, const Total& total) : total(total), local{reinterpret_cast<uint64*>(memory)} {
        column = reinterpret_cast<Bucket*>(memory + (LIMBS * 8 + 15) / 16 * 16) + threadIdx.x;
        for (int k = threadIdx.x; k < LIMBS; k += THREADS) local.words[k] = 0;
#pragma unroll 4
        for (int k = 0; k < BUCKETS; ++k) column[k * THREADS] = Bucket{};
        begin(1);
        __syncthreads();
    }

    __device__ Total squares() const { return VALUED ? local.second() : local; }

    __device__ void begin(int first) {
        field = first;
        if constexpr (VALUED) window.start(first - KEY_BIAS<T>);
    }

    // Where an element lies in the band: its field less the first, and its fraction; no less than REACH outside.
    __device__ uint32 place_of(T x) const { return Bucket::high(x) + Bucket::high(x) - (uint32(field) << SHIFT); }

    // Of an element outside, which has no place, x and its hidden bit must be 0: it adds nothing to the first bucket.
    __device__ void add(T x, uint32 place, uint32 hidden_bit) {
        char* const at = reinterpret_cast<char*>(column) + (place >> (SHIFT + 2)) * stride;
        Bucket::add(*reinterpret_cast<Bucket*>(at), place >> SHIFT & 3, x, hidden_bit);
        if constexpr (VALUED) window.add(x);
    }

    // The elements outside of the band that are not zero, as bits.
    template <int FLIGHT>
    __device__ uint32 outside(const Tile<T, FLIGHT>& tile) const {
        uint32 found = 0;
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) found |= uint32(place_of(tile[at]) >= REACH && tile[at] != 0) << at;
        return found;
    }

    // All threads of a warp call this equally often.
    template <int FLIGHT, class Refill>
    __device__ void operator()(Tile<T, FLIGHT>& tile, const Refill& refill) {
        static_assert(Tile<T, FLIGHT>::SIZE <= W::BUDGET && Tile<T, FLIGHT>::SIZE <= 32);
        uint32 farthest = 0;
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const uint32 place = place_of(tile[at]);
            farthest = farthest > place ? farthest : place;
        }
        const bool inside = __all_sync(~0u, farthest < REACH);
        int next = field;
        if (!inside) {
            if (!all_finite(tile)) specials.set_aside(tile);
            specials.look(tile);
            misses += __popc(__ballot_sync(~0u, outside(tile) != 0));
            if (misses >= PATIENCE) next = around(tile);
        }
        if (left < tile.SIZE || next != field) {
            settle(next != field);
            if (next != field) begin(next);
        }
        left -= tile.SIZE;
        if (inside) {
            specials.flags |= VALUED ? NOT_NEGATIVE_ZERO : 0;
#pragma unroll
            for (int at = 0; at < tile.SIZE; ++at) {
                add(tile[at], place_of(tile[at]), hidden);
                if (at % tile.LANES == tile.LANES - 1) refill(at / tile.LANES);
            }
        } else {
            add_each(tile);
#pragma unroll
            for (int k = 0; k < FLIGHT; ++k) refill(k);
        }
    }

    // Without a branch but for elements outside that are not zero: an array may have many zeros.
    template <int FLIGHT>
    __device__ void add_each(const Tile<T, FLIGHT>& tile) {
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const uint32 place = place_of(tile[at]);
            const bool inside = place < REACH;
            add(inside ? tile[at] : T(0), inside ? place : 0, inside ? hidden : 0);
        }
        for (uint32 left_out = outside(tile); left_out;) {
            const int chosen = 31 - __clz(left_out);
            left_out ^= 1u << chosen;
            T x = tile[0];
#pragma unroll
            for (int at = 1; at < tile.SIZE; ++at) x = at == chosen ? tile[at] : x;
            add_slowly(x);
        }
    }

    __device__ void add_slowly(double x) {
        const Significand m(x);
        const uint128 square = uint128(m.magnitude) * m.magnitude;
        squares().add(int128(uint64(square)), 2 * m.position);
        squares().add(int128(uint64(square >> 64)), 2 * m.position + 64);
        if constexpr (VALUED) local.add(m.negative ? -int128(m.magnitude) : int128(m.magnitude), m.position);
    }

    // The first field of the band that suits a warp's tiles: around the mean of their fields, but so that it holds all, if it can.
    template <int FLIGHT>
    __device__ int around(const Tile<T, FLIGHT>& tile) {
        misses = 0;
        int sum = 0, count = 0, lowest = KEY_LIMIT<T>, highest = 0;
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            if (tile[at] == 0) continue;
            const int found = int(Bucket::high(tile[at]) >> KEY_SHIFT<T>) & KEY_LIMIT<T>;
            sum += found;
            ++count;
            lowest = found < lowest ? found : lowest;
            highest = found > highest ? found : highest;
        }
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            sum += __shfl_xor_sync(~0u, sum, distance);
            count += __shfl_xor_sync(~0u, count, distance);
            const int low = __shfl_xor_sync(~0u, lowest, distance), high = __shfl_xor_sync(~0u, highest, distance);
            lowest = low < lowest ? low : lowest;
            highest = high > highest ? high : highest;
        }
        if (count == 0) return field;
        int first = sum / count - FIELDS / 2;
        if (highest - lowest < FIELDS) {
            first = first > lowest ? lowest : first;
            first = first < highest - FIELDS + 1 ? highest - FIELDS + 1 : first;
        } else {
            misses = -HOPELESS;
        }
        return first < 1 ? 1 : first > LAST_FIELD ? LAST_FIELD : first;
    }

    // Call this before more than BUDGET elements have been added since the last time. Now and then, or if it must, it brings the
    // warp's sums to the block's total.
    __device__ void settle(bool all) {
        if constexpr (VALUED) window.settle();
        left = W::BUDGET;
        if (--rounds > 0 && !all) return;
        rounds = SETTLED;
        const int lane = threadIdx.x % 32;
        __syncwarp();
        if (lane < BUCKETS) Bucket::fold(column - lane + lane * THREADS, Bucket::ORIGIN + 2 * field + 8 * lane, squares());
        __syncwarp();
        if constexpr (VALUED) window.fold(local);
    }

    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        settle(true);
        __syncthreads();
        // Two numbers below 2^32 to a digit.
        for (int k = threadIdx.x; k < LIMBS; k += THREADS) {
            const int64 limb = local.words[k];
            if (limb == 0) continue;
            atomicAdd(total.words + k, uint64(uint32(limb)));
            atomicAdd(total.words + k + 1, uint64(limb >> 32));
        }
    }
};
