// Selections by rank. Of a whole array: counts elements by a digit of eight bits of their keys, on the way to the elements of given ranks. The digits above it
// lead an element from slot to slot, or nowhere: each rank that is looked for has a slot, and ranks that share all digits so
// far share one.
#include "ranks_of_rows.cuh"
#include "vector.cuh"

constexpr int DIGITS = 256;
constexpr int COUNTERS = 32 * DIGITS;  // for 32 slots, or 32 copies of those of one: then no two lanes meet
constexpr int LOADS = 4;
constexpr uint8 NOWHERE_TO_GO = 255;

// The slot of an element with this key at the digit `level`, counted from the highest.
template <class Key>
__device__ uint8 slot_of(Key key, int level, const uint8* first, const uint8* next) {
    uint8 slot = 0;
    for (int k = 0; k < level && slot != NOWHERE_TO_GO; ++k) {
        const uint32 digit = uint32(key >> (8 * (int(sizeof(Key)) - 1 - k))) & 255u;
        slot = k == 0 ? first[digit] : __ldg(next + (k * 32 + slot) * DIGITS + digit);
    }
    return slot;
}

// Adds to counts[slot][digit] how many elements have the digit `level` of their key and lead to the slot. `next` has, for
// each level above, a table [slot][digit] of slots. There are 2^(5 − spread) slots or fewer, with 2^spread counters each.
// Keys below `lowest` or above `highest` lead nowhere, which most keys do.
template <class T>
__global__ void __launch_bounds__(256) count_digits(const T* data, uint64 size, int level, const uint8* next, uint64 lowest, uint64 highest, int spread,
                                                    uint64* counts) {
    using Key = SortingKey<T>;
    __shared__ uint32 counters[COUNTERS];
    __shared__ uint8 first[DIGITS];
    for (int k = threadIdx.x; k < COUNTERS; k += blockDim.x) counters[k] = 0;
    for (int k = threadIdx.x; k < DIGITS; k += blockDim.x) first[k] = level ? next[k] : uint8(0);
    __syncthreads();
    const uint32 copy = threadIdx.x & ((1u << spread) - 1u);
    const Key least = Key(lowest), most = Key(highest);
    const int shift = 8 * (int(sizeof(Key)) - 1 - level);
    const auto take = [&](T x) {
        const Key key = sorting_key(x);
        if (key < least || key > most) return;
        const uint8 slot = slot_of(key, level, first, next);
        if (slot != NOWHERE_TO_GO) atomicAdd(counters + (((slot * DIGITS + (uint32(key >> shift) & 255u)) << spread) | copy), 1u);
    };
    const uint64 thread = uint64(blockIdx.x) * blockDim.x + threadIdx.x, threads = uint64(gridDim.x) * blockDim.x;
    const uint64 skew = (16 - reinterpret_cast<uint64>(data) % 16) % 16 / sizeof(T);
    const uint64 before = skew < size ? skew : size;
    const uint64 vectors = (size - before) / Vector<T>::size;
    for (uint64 k = thread; k < before; k += threads) take(data[k]);
    for (uint64 k = before + vectors * Vector<T>::size + thread; k < size; k += threads) take(data[k]);
    const T* const aligned = data + before;
    uint64 at = thread;
    for (; at + (LOADS - 1) * threads < vectors; at += LOADS * threads) {
        Vector<T> read[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; ++k) read[k] = Vector<T>::load(aligned + (at + k * threads) * Vector<T>::size);
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
#pragma unroll
            for (int lane = 0; lane < Vector<T>::size; ++lane) take(read[k][lane]);
    }
    for (; at < vectors; at += threads) {
        const Vector<T> read = Vector<T>::load(aligned + at * Vector<T>::size);
#pragma unroll
        for (int lane = 0; lane < Vector<T>::size; ++lane) take(read[lane]);
    }
    __syncthreads();
    for (int counter = threadIdx.x; counter < COUNTERS >> spread; counter += blockDim.x) {
        uint64 total = 0;
        for (uint32 k = 0; k < 1u << spread; ++k) total += counters[(counter << spread) + ((k + counter) & ((1u << spread) - 1u))];
        if (total) atomicAdd(counts + counter, total);
    }
}

// Rows of up to 64 elements, a warp each; longer ones are left to the next kernel.
template <class T>
__global__ void __launch_bounds__(256, 4) select_in_short_rows(const T* data, const int64* offsets, uint64 length, uint64 total, uint64 rows,
                                                            const int64* ranks, const int64* which, int wanted, SortingKey<T>* found) {
    const Members members{offsets, length, 1, length, total};
    const RanksOfRows asked{ranks, which, wanted};
    for (uint64 row = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / 32; row < rows; row += uint64(gridDim.x) * blockDim.x / 32) {
        uint64 begin, count;
        members.of(row, begin, count);
        if (count && count <= 64) select_in_short_row(data + begin, uint32(count), asked.of(row), wanted, found + row * wanted);
    }
}

// Rows of more than 64 elements and up to `longest`, a block each.
template <class T>
__global__ void __launch_bounds__(ROW_THREADS) select_in_rows(const T* data, const int64* offsets, uint64 length, uint64 total, uint64 rows,
                                                              const int64* ranks, const int64* which, int wanted, SortingKey<T>* found,
                                                              uint64 longest) {
    const Members members{offsets, length, 1, length, total};
    const RanksOfRows asked{ranks, which, wanted};
    for (uint64 row = blockIdx.x; row < rows; row += gridDim.x) {
        uint64 begin, count;
        members.of(row, begin, count);
        if (count > 64 && count <= longest) select_in_row(data + begin, count, asked.of(row), wanted, found + row * wanted);
    }
}
