// A variance or a deviation from the totals of values and of squares, as exact_finish.cuh has it, by a block: one thread would take
// microseconds for the square of a sum, a product of digits after another.
//
// Two threads make the numbers of both sums, and each thread makes columns of n · squares − values², which one thread carries.
#pragma once
#include "exact_finish.cuh"

// What the block works with, in its shared memory.
struct BlockFinishRoom {
    static constexpr int COLUMNS = FinishRoom::LARGE;
    Number values, squares;
    uint32 of_values[FinishRoom::SMALL], of_squares[FinishRoom::LARGE], of_spread[FinishRoom::LARGE];
    uint32 low[COLUMNS], middle[COLUMNS];
    int32 high[COLUMNS];
};

// The value of `count` terms, to be called by all threads of a block, of which the first writes it. Arguments are those of
// finish_total.
template <class Out>
__device__ void finish_by_block(Out* out, const int64* limbs, const Ends (&ends)[2], uint64 finish, uint64 count, uint64 ddof,
                                BlockFinishRoom& room) {
    Out value;
    if (finish_special(value, limbs, finish, count, ddof)) {
        if (threadIdx.x == 0) *out = value;
        return;
    }
    if (threadIdx.x == 0) room.values = number_of(limbs + Total::DIGITS, ends[0], -1074, room.of_values);
    if (threadIdx.x == blockDim.x - 1)
        room.squares = number_of(limbs + Total::OF_VALUES + Total::DIGITS, ends[1], -2148, room.of_squares);
    __syncthreads();
    const Number values = room.values, squares = room.squares;
    Number found = spread_of(values, squares, room.of_spread + FinishRoom::BELOW);
    const int low = found.low, columns = found.high - low + 1;
    for (int at = threadIdx.x; at < columns; at += blockDim.x) {
        const int k = low + at;
        const bool squared = k >= squares.low && k <= squares.high;
        int128 column = squared ? int128(uint128(squares.digits[k]) * count) : 0;
        if (!values.is_zero()) {
            const int from = k - values.high > values.low ? k - values.high : values.low;
            const int to = k - values.low < values.high ? k - values.low : values.high;
            for (int i = from; i <= to; ++i) column -= uint64(values.digits[i]) * values.digits[k - i];
        }
        room.low[at] = uint32(uint64(column));
        room.middle[at] = uint32(uint64(column >> 32));
        room.high[at] = int32(column >> 64);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    int64 carried = 0;
    uint32 before = 0;
    int32 first = 0, second = 0;  // what the columns below reach up here
#pragma unroll 4
    for (int at = 0; at < columns; ++at) {
        carried += int64(room.low[at]) + before + first;
        before = room.middle[at];
        first = second;
        second = room.high[at];
        found.digits[low + at] = uint32(uint64(carried));
        carried >>= 32;
    }
    found.trim();
    finish_spread(value, found, finish, count, ddof);
    *out = value;
}
