// Exact sums of squares, alone or with values, of elements that lie in a band of exponents: each warp has a band of FIELDS
// neighbouring exponent fields, and each thread a column of buckets for the squares in it (exact_band_buckets.cuh). Values are added
// in a window that holds the same band (exact_band_window.cuh).
//
// What is outside leaves a tile before it is added: the smallest element of the band stands for each such element, and as many of
// these are taken away again. Zeros add nothing. Other elements outside should be rare: they wait until each lane has one to add
// slowly, and bands follow the data. So a tile has one way for all elements, with zeros or without.
//
// What leaves a warp goes to a total of the block in shared memory, by atomics of integers, and at the end to that of the launch. An
// element adds at most two numbers below 2^32 to a word, so the words hold what 2^29 elements of a block add.
#pragma once
#include "exact_band_buckets.cuh"
#include "exact_band_window.cuh"
#include "exact_specials.cuh"

// FIELDS exponent fields, a multiple of 4; L levels of values, 0 for squares alone.
// PARTS of a tile are looked at one after another, so that the last reads of a tile may still be under way.
template <class T, int L, int FIELDS, int THREADS, int PARTS = 2>
struct BandSum {
    static constexpr bool VALUED = L > 0;
    using Bucket = SquareBucket<T>;
    using W = BandWindow<VALUED ? L : 1, Format<T>::PRECISION - 1>;
    static constexpr int BUCKETS = FIELDS / FIELDS_OF_BUCKET, SHIFT = KEY_SHIFT<T> + 1;  // of doubled words, which have no sign
    static constexpr uint32 REACH = uint32(FIELDS) << SHIFT;
    static_assert(BUCKETS <= 32 && FIELDS % FIELDS_OF_BUCKET == 0 && THREADS % 32 == 0);
    static_assert(!VALUED || FIELDS <= W::BINADES, "values would leave their window");
    // Where the biases of all levels are finite, and no element is infinite.
    static constexpr int LAST_FINITE = KEY_LIMIT<T> - FIELDS, LAST_BIASED = 970 + 52 - W::SPACING * (L - 1) + 1023;
    static constexpr int LAST_FIELD = VALUED && sizeof(T) == 8 && LAST_BIASED < LAST_FINITE ? LAST_BIASED : LAST_FINITE;

    // Before the buckets lie the block's total, of values and behind them of squares, and 32 elements that wait for each warp.
    static constexpr int LIMBS = (VALUED ? Total::OF_VALUES : 0) + Total::DIGITS + 138;
    static constexpr int HEAD = (LIMBS * 8 + THREADS * int(sizeof(T)) + 15) / 16 * 16;
    static constexpr int BYTES = BUCKETS * sizeof(Bucket) + ((HEAD + THREADS - 1) / THREADS + 15) / 16 * 16;
    static constexpr int MOST_TILES = Bucket::MOST / W::MOST < 1024 ? Bucket::MOST / W::MOST : 1024;
    static constexpr int TILES = VALUED && W::TILES < MOST_TILES ? W::TILES : MOST_TILES;
    static constexpr int PATIENCE = 32;  // lanes that had elements outside before the band moves
    static constexpr int HOPELESS = 32 * PATIENCE;  // and so many more if no band would hold all
    static constexpr int FEW = 4;  // lanes whose elements a band need not hold

    Specials<VALUED ? VALUES : SQUARES> specials;
    Total total;
    BlockTotal local;
    Bucket* column;
    W window;
    int field = 1;    // the first of the band
    uint32 fraction;  // all bits of a fraction
    int waiting = 0;
    int tiles = 0, misses = PATIENCE - 1;  // since a warp's sums were brought to the block's total, and since the band moved

    __device__ BandSum(char* memory, const Total& total) : total(total), local{reinterpret_cast<uint64*>(memory)} {
        column = reinterpret_cast<Bucket*>(memory + HEAD) + threadIdx.x;
        for (int k = threadIdx.x; k < LIMBS; k += THREADS) local.words[k] = 0;
#pragma unroll 4
        for (int k = 0; k < BUCKETS; ++k) column[k * THREADS] = Bucket{};
        __syncthreads();
        // The compiler must not know this number: it would make it anew for every element.
        fraction = ((1u << KEY_SHIFT<T>) - 1) | uint32(*static_cast<volatile uint64*>(local.words));
        __syncthreads();
    }

    // Elements outside of the band that wait: 32 of a warp, behind the total.
    __device__ T* queue() const { return reinterpret_cast<T*>(local.words + LIMBS) + threadIdx.x / 32 * 32; }
    __device__ BlockTotal squares() const { return VALUED ? local.second() : local; }

    __device__ int lowest() const { return field - KEY_BIAS<T>; }  // exponent of the band

    // Where an element lies in the band: its field less the first, and its fraction; no less than REACH outside.
    __device__ uint32 place_of(T x) const { return Bucket::high(x) + Bucket::high(x) - (uint32(field) << SHIFT); }

    // All threads of a warp call this equally often.
    template <int FLIGHT, class Refill>
    __device__ void operator()(Tile<T, FLIGHT>& tile, const Refill& refill) {
        constexpr int READS = FLIGHT / PARTS, LANES = Tile<T, FLIGHT>::LANES, SIZE = READS * LANES;
        static_assert(FLIGHT % PARTS == 0 && FLIGHT * LANES <= W::MOST);
        typename W::Totals values = W::begin(lowest());
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            uint32 places[SIZE], farthest = 0;
#pragma unroll
            for (int at = 0; at < SIZE; ++at) {
                places[at] = place_of(tile[part * SIZE + at]);
                farthest = farthest > places[at] ? farthest : places[at];
            }
            if (__all_sync(~0u, farthest < REACH))
                specials.flags |= VALUED ? NOT_NEGATIVE_ZERO : 0;
            else
                take_out<READS>(tile, part, places, values);
#pragma unroll
            for (int at = 0; at < SIZE; ++at) {
                const T x = tile[part * SIZE + at];
                const uint32 bucket = (places[at] >> (SHIFT + 2)) * uint32(THREADS * sizeof(Bucket));
                Bucket::add(*reinterpret_cast<Bucket*>(reinterpret_cast<char*>(column) + bucket), places[at] >> SHIFT & 3, x, fraction);
                if constexpr (VALUED) values.add(x);
                if (at % LANES == LANES - 1) refill(part * READS + at / LANES);
            }
        }
        end(values);
        if (tiles == TILES) settle();
    }

    __device__ void end(const typename W::Totals& values) {
        if constexpr (VALUED) window.end(values);
        ++tiles;
    }

    // Leaves only elements of the band in a part of a tile, whose places are given.
    template <int READS, int FLIGHT, int SIZE>
    __device__ void take_out(Tile<T, FLIGHT>& tile, int part, uint32 (&places)[SIZE], typename W::Totals& values) {
        Tile<T, READS> some;
#pragma unroll
        for (int k = 0; k < READS; ++k) some.vectors[k] = tile.vectors[part * READS + k];
        if (VALUED && !(specials.flags & NOT_NEGATIVE_ZERO)) {
            if (!all_finite(some)) specials.set_aside(some);
            specials.look(some);
        }
        uint32 taken = take_zeros_out(some, places);  // a bit for each element that is replaced
        uint32 farthest = 0;
#pragma unroll
        for (int at = 0; at < SIZE; ++at) farthest = farthest > places[at] ? farthest : places[at];
        if (!__all_sync(~0u, farthest < REACH)) taken = take_others_out(some, places, taken, values);
#pragma unroll
        for (int k = 0; k < READS; ++k) tile.vectors[part * READS + k] = some.vectors[k];
        Bucket::take_away(*column, __popc(taken));
        if constexpr (VALUED) window.take_away(__popc(taken));
    }

    // The same where not only zeros, which are replaced, are outside. Returns bits of what is replaced then.
    template <int READS, int SIZE>
    __device__ uint32 take_others_out(Tile<T, READS>& tile, uint32 (&places)[SIZE], uint32 taken, typename W::Totals& values) {
        uint32 out = outside(places);
        misses += __popc(__ballot_sync(~0u, out != 0));
        if (misses >= PATIENCE) {
#pragma unroll
            for (int at = 0; at < SIZE; ++at)
                if (taken >> at & 1) tile.make_zero(at, false);
            if (!all_finite(tile)) specials.set_aside(tile);
            follow(tile, values);
            taken = take_zeros_out(tile, places);
            out = outside(places);
        }
        put_off(tile, out);
#pragma unroll
        for (int at = 0; at < SIZE; ++at) {
            if (!(out >> at & 1)) continue;
            tile.make_zero(at, false);
            replace(tile, at, true);
            places[at] = 0;
        }
        return taken | out;
    }

    template <int READS, int SIZE>
    __device__ uint32 take_zeros_out(Tile<T, READS>& tile, uint32 (&places)[SIZE]) const {
        uint32 taken = 0;
#pragma unroll
        for (int at = 0; at < SIZE; ++at) {
            const bool zero = tile[at] == 0;
            replace(tile, at, zero);
            places[at] = zero ? 0 : place_of(tile[at]);
            taken |= uint32(zero) << at;
        }
        return taken;
    }

    template <int SIZE>
    static __device__ uint32 outside(const uint32 (&places)[SIZE]) {
        uint32 out = 0;
#pragma unroll
        for (int at = 0; at < SIZE; ++at) out |= uint32(places[at] >= REACH) << at;
        return out;
    }

    // Has the elements whose bits are set wait until a warp has 32 of them, one for each lane.
    template <int READS>
    __device__ void put_off(const Tile<T, READS>& tile, uint32 out) {
#pragma unroll 1
        while (!__all_sync(~0u, out == 0)) {
            const int chosen = 31 - __clz(out | 1);
            T x = tile[0];
#pragma unroll
            for (int at = 1; at < tile.SIZE; ++at) x = at == chosen ? tile[at] : x;
            const uint32 lanes = __ballot_sync(~0u, out != 0), earlier = lanes & ((1u << threadIdx.x % 32) - 1);
            if (waiting + __popc(lanes) > 32) add_waiting();
            if (out) queue()[waiting + __popc(earlier)] = x;
            waiting += __popc(lanes);
            out &= ~(1u << chosen);
        }
    }

    __device__ void add_waiting() {
        const int lane = threadIdx.x % 32;
        __syncwarp();
        if (lane < waiting) {
            Tile<T, 1> one{};
            memcpy(one.vectors[0].words, queue() + lane, sizeof(T));
            specials.set_aside(one);
            add_slowly(one[0]);
        }
        waiting = 0;
        __syncwarp();
    }

    // Makes the smallest element of the band of a zero that is `out`.
    template <int FLIGHT>
    __device__ void replace(Tile<T, FLIGHT>& tile, int at, bool out) const {
        uint32& high = tile.vectors[at / tile.LANES].words[(at % tile.LANES + 1) * (sizeof(T) / 4) - 1];
        high = out ? uint32(field) << KEY_SHIFT<T> : high;
    }

    __device__ void add_slowly(double x) {
        const Significand m(x);
        const uint128 square = uint128(m.magnitude) * m.magnitude;
        squares().add(int128(uint64(square)), 2 * m.position);
        squares().add(int128(uint64(square >> 64)), 2 * m.position + 64);
        if constexpr (VALUED) local.add(m.negative ? -int128(m.magnitude) : int128(m.magnitude), m.position);
    }

    // Moves the band to a warp's tiles.
    template <int READS>
    __device__ void follow(const Tile<T, READS>& tile, typename W::Totals& values) {
        const int next = around(tile);
        if (next == field) return;
        end(values);
        settle();
        field = next;
        values = W::begin(lowest());
    }

    // The first field of the band that suits a warp's tiles: around the mean of their fields, but so that it holds nearly all, if it can.
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
        bool far = false;
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const int found = int(Bucket::high(tile[at]) >> KEY_SHIFT<T>) & KEY_LIMIT<T>;
            far |= tile[at] != 0 && uint32(found - first) >= FIELDS;
        }
        if (__popc(__ballot_sync(~0u, far)) <= FEW) {
        } else if (highest - lowest < FIELDS) {
            first = first > lowest ? lowest : first;
            first = first < highest - FIELDS + 1 ? highest - FIELDS + 1 : first;
        } else {
            misses = -HOPELESS;
        }
        return first < 1 ? 1 : first > LAST_FIELD ? LAST_FIELD : first;
    }

    // Brings the warp's sums to the block's total; all lanes take part.
    __device__ void settle() {
        const int lane = threadIdx.x % 32;
        __syncwarp();
        if (lane < BUCKETS) Bucket::fold(column - lane + lane * THREADS, Bucket::ORIGIN + 2 * field + 8 * lane, squares());
        __syncwarp();
        if constexpr (VALUED) window.fold(local, lowest(), tiles);
        tiles = 0;
    }

    __device__ void finish() {
        add_waiting();
        settle();
        total.note(specials.flags, specials.nans);
        __syncthreads();
        local.add_to(total, LIMBS);
    }
};
