// The values of groups from the integers of their levels, each rounded once.
#pragma once
#include "keyed_total.cuh"
#include "keyed_sums.cuh"

// ⌊number⌋ · 2^place, and whether anything is left.
struct Rounding {
    uint128 number;
    int place;
    bool sticky, negative;
};

// Σ sums[k] · 2^(place + apart · (SIZE − 1 − k)) ÷ divisor, with enough bits for one rounding to any float; spoils sums, which are below
// 2^95 in magnitude. divisor < 2^32.
template <int SIZE>
__device__ Rounding rounding_of(int128 (&sums)[SIZE], int apart, int place, uint32 divisor) {
    const uint128 mask = (uint128(1) << apart) - 1;
    const auto carry = [&] {
#pragma unroll
        for (int k = SIZE - 1; k > 0; --k) {
            sums[k - 1] += sums[k] >> apart;
            sums[k] = int128(uint128(sums[k]) & mask);
        }
    };
    carry();
    Rounding found{0, place + apart * (SIZE - 1), false, sums[0] < 0};
    if (found.negative) {
#pragma unroll
        for (int k = 0; k < SIZE; ++k) sums[k] = -sums[k];
        carry();
    }
    found.number = uint128(sums[0]);
    bool cut = false;
#pragma unroll
    for (int k = 1; k < SIZE; ++k) {
        cut = cut || found.number >> 87;  // which is enough
        if (cut) {
            found.sticky = found.sticky || sums[k] != 0;
        } else {
            found.number = found.number << apart | uint128(sums[k]);
            found.place -= apart;
        }
    }
    if (divisor > 1 && found.number) {
        if (!found.sticky) {
            const uint64 upper = uint64(found.number >> 64);
            const int room = upper ? __clzll(int64(upper)) : 64 + __clzll(int64(uint64(found.number)));
            found.number <<= room;
            found.place -= room;
        }
        const uint128 quotient = found.number / divisor;
        found.sticky = found.sticky || quotient * divisor != found.number;
        found.number = quotient;
    }
    return found;
}

template <class Out>
__device__ double rounded_to(const Rounding& x) {
    using F = Format<Out>;
    return nearest(x.number, x.sticky, x.place, F::PRECISION, F::LOWEST, F::HIGHEST);
}

// The sum of a level of a group.
__device__ inline int128 level_sum(const KeyedState& state, int level, uint64 code) {
    const uint64* const at = state.sums + 2 * level * state.range + code;
    return int128(at[0]) + (int128(int64(at[state.range])) << 32);
}

// The sums or means of all groups; 0 for those without elements. A sum of 0 is −0 where `other` is given and has 0: no element was
// anything but −0.
template <class V, class Out, int LEVELS>
__device__ void finish_groups(const KeyedState& state, int unit, bool mean, const uint8* other, Out* values) {
    constexpr int SIZE = is_real<V> ? LEVELS + 1 : LEVELS, APART = LevelsOf<V, LEVELS>::APART;
    const int place = is_real<V> ? unit - APART * LEVELS : 0;
    for (uint64 code = uint64(blockIdx.x) * blockDim.x + threadIdx.x; code < state.range; code += uint64(gridDim.x) * blockDim.x) {
        const uint32 count = state.counts[code];
        if (count == 0) {
            values[code] = Out(0);
            continue;
        }
        const uint32 flags = state.notes[SPECIALS] ? state.flags[code] : 0;
        if (flags) {
            const double infinity = __longlong_as_double(0x7ff0000000000000ll);
            const bool both = (flags & SAW_INFINITY) && (flags & SAW_NEGATIVE_INFINITY);
            values[code] = flags & SAW_NAN || both ? nan_of<Out>() : Out(flags & SAW_INFINITY ? infinity : -infinity);
            continue;
        }
        int128 sums[SIZE];
#pragma unroll
        for (int k = 0; k < SIZE; ++k) sums[k] = level_sum(state, k, code);
        const Rounding found = rounding_of(sums, APART, place, mean ? count : 1);
        const double value = rounded_to<Out>(found);
        const bool negative = found.negative || (found.number == 0 && other && !other[code]);
        values[code] = Out(negative ? -value : value);
    }
}

// The sums of integers of all groups, in 128 bits.
template <class V, int LEVELS>
__device__ void finish_integers(const KeyedState& state, uint64* low, int64* high) {
    for (uint64 code = uint64(blockIdx.x) * blockDim.x + threadIdx.x; code < state.range; code += uint64(gridDim.x) * blockDim.x) {
        int128 sum = 0;
#pragma unroll
        for (int k = 0; k < LEVELS; ++k) sum = (sum << LevelsOf<V, LEVELS>::APART) + level_sum(state, k, code);
        low[code] = uint64(uint128(sum));
        high[code] = int64(sum >> 64);
    }
}

// other[code] = 1 for every group that has an element other than −0.
template <class K, class V>
__device__ void note_other_than_zero(const K* keys, const V* values, uint64 count, const Codes<K>& codes, uint8* other) {
    for (uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += uint64(gridDim.x) * blockDim.x) {
        uint32 code;
        const V x = values[at];
        if (codes.of(keys[at], code) && !LevelsOf<V, 1>::is_negative_zero(x) && !is_nan(x) && !other[code]) other[code] = 1;
    }
}

// Listed elements: each is added to the total of its group, of which there are few.
__device__ inline void add_listed_elements(const double* elements, const uint32* places, uint32 count, uint64* totals) {
    const uint32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const Significand s(elements[at]);
    const int128 number = s.negative ? -int128(s.magnitude) : int128(s.magnitude);
    Total{totals + uint64(places[at]) * Total::OF_VALUES}.add(number, int(s.position));
}

// Totals to which the levels of their groups are added, rounded.
template <class V, int LEVELS>
__device__ void finish_listed_groups(const KeyedState& state, int unit, bool mean, const uint32* groups, uint32 count, uint64* totals,
                                     V* values) {
    const uint32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const uint32 code = groups[at], flags = state.flags[code];
    uint64* const words = totals + uint64(at) * Total::OF_VALUES;
#pragma unroll
    for (int k = 0; k <= LEVELS; ++k)
        Total{words}.add(level_sum(state, k, code), unit - LevelsOf<V, LEVELS>::APART * k + 1074);
    words[Total::FLAGS] = flags & SAW_NAN ? 1 : 0;
    words[Total::FLAGS + 1] = flags & SAW_INFINITY ? 1 : 0;
    words[Total::FLAGS + 2] = flags & SAW_NEGATIVE_INFINITY ? 1 : 0;
    words[Total::FLAGS + 3] = 1;  // listed elements are not 0
    values[code] = round_total<V>(words, mean ? state.counts[code] : 0, false);
}
