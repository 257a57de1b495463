// Exact sums by key: a sample of the rows decides how groups are added (kernels/cuda/keyed/), and all ways give the same bits.
#include "keyed_extremes.cuh"
#include "keyed_finish.cuh"
#include "keyed_partition.cuh"
#include "keyed_runs.cuh"
#include "keyed_sample.cuh"
#include "keyed_stream_ends.cuh"
#include "keyed_stream_serial.cuh"

#define STATE \
    uint64 *sums, uint32 *counts, uint32 *absent, uint32 *flags, uint32 *notes, uint32 *listed, double *elements, uint32 most, uint64 range
#define STATE_OF {sums, counts, absent, flags, notes, listed, elements, most, range}

template <class K, class V>
__global__ void __launch_bounds__(256) sample(const K* keys, const V* values, uint64 count, uint64 stride, uint32 samples,
                                              uint64* found) {
    sample_rows(keys, values, count, stride, samples, found);
}

template <class K, class V, int LEVELS, int READS, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) few_groups(const K* keys, const V* values, uint64 count, uint64 span, int64 least,
                                                              uint32 copies, int32 unit, uint32 omit_nan, STATE) {
    extern __shared__ __align__(16) uint32 memory[];
    const KeyedState state STATE_OF;
    add_few_groups<K, V, LEVELS, THREADS, READS>(keys, values, count, span, Codes<K>{least, range}, copies, unit, omit_nan, state, memory);
}

template <class K, class V, int LEVELS, int READS, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) run_sums(const K* keys, const V* values, uint64 count, uint64 span, int64 least,
                                                            int32 unit, uint32 omit_nan, STATE) {
    const KeyedState state STATE_OF;
    add_runs<K, V, LEVELS, READS>(keys, values, count, span, Codes<K>{least, range}, unit, omit_nan, state);
}

#define SORTED \
    K *keys_out, V *values_out, uint32 *counts, uint64 *heads, uint64 *dozens, uint64 *parts, uint64 *joined, uint64 *listed, uint32 *notes, uint32 most, \
    uint32 room
#define SORTED_OF {keys_out, values_out, counts, Progress{heads, dozens}, parts, joined, listed, notes, most, room}

// Before sm_90 the compiler needs more registers for the largest tiles, and would spill them.
#if __CUDA_ARCH__ >= 900
constexpr int FEWER = 0;
#else
constexpr int FEWER = 1;
#endif
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1000
constexpr int OTHER = 0;
#else
constexpr int OTHER = 1;
#endif

template <class K, class V, int PLANES, bool MEAN, int READS, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS - (READS == 4 ? FEWER : PLANES == 2 ? OTHER : 0)) stream_sums(const K* keys, const V* values, uint64 count, K turned, int32 unit, SORTED) {
    extern __shared__ __align__(16) uint32 memory[];
    const SortedGroups<K, V> out SORTED_OF;
    add_stream<K, V, PLANES, READS, THREADS, MEAN>(keys, values, count, turned, unit, out, reinterpret_cast<char*>(memory));
}

template <class K, class V, int READS, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS - OTHER) serial_sums(const K* keys, const V* values, uint64 count, K turned, int32 unit, SORTED) {
    extern __shared__ __align__(16) uint32 memory[];
    const SortedGroups<K, V> out SORTED_OF;
    add_serial_stream<K, READS, THREADS>(keys, values, count, turned, unit, out, reinterpret_cast<char*>(memory));
}

template <int PLANES>
__global__ void __launch_bounds__(256) stream_joins(uint64* parts, uint64* joined, const uint32* notes, uint32 tiles) {
    join_parts<PLANES>(parts, joined, notes, tiles);
}

template <class K, class V, int PLANES, bool MEAN>
__global__ void __launch_bounds__(128) stream_ends(int32 unit, uint32 tiles, uint32 size, uint64 count, SORTED) {
    const SortedGroups<K, V> out SORTED_OF;
    finish_parts<K, V, PLANES, MEAN>(unit, tiles, size, count, out);
}

template <class K, class V, bool MEAN>
__global__ void __launch_bounds__(128) stream_again(const V* values, uint32 omit_nan, uint64* totals, SORTED) {
    const SortedGroups<K, V> out SORTED_OF;
    read_again<K, V, MEAN>(values, omit_nan, totals, out);
}

template <class K, int THREADS>
__global__ void __launch_bounds__(THREADS) bucket_sizes(const K* keys, uint64 count, uint64 span, int64 least, uint64 range,
                                                        uint32 bits, uint32 buckets, uint32* sizes, uint32* notes) {
    extern __shared__ __align__(16) uint32 memory[];
    count_buckets<K, THREADS>(keys, count, span, Codes<K>{least, range}, bits, buckets, sizes, notes, memory);
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS) bucket_starts(const uint32* sizes, uint32 buckets, uint32 coarse_bits, uint32 tile,
                                                         uint32* starts, uint32* cursors, uint32* coarse_cursors, uint32* tile_starts) {
    start_buckets<THREADS>(sizes, buckets, coarse_bits, tile, starts, cursors, coarse_cursors, tile_starts);
}

template <class K, class V, int N, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) into_buckets(const K* keys, const V* values, uint64 count, int64 least, uint64 range,
                                                                const uint32* tile_starts, const uint32* starts, uint32 coarse,
                                                                uint32 coarse_bits, uint32 buckets, uint32 bits, uint32 mask,
                                                                uint32* cursors, uint32* codes_out, V* values_out) {
    extern __shared__ __align__(16) uint32 memory[];
    const Tiles tiles{count, tile_starts, starts, coarse, coarse_bits, buckets};
    put_into_buckets<K, V, THREADS, N>(keys, values, tiles, Codes<K>{least, range}, bits, mask, cursors, codes_out, values_out,
                                       reinterpret_cast<char*>(memory));
}

template <class V, int LEVELS, int N, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) bucket_sums(const uint32* codes, const V* values, const uint32* starts, uint32 buckets,
                                                               uint32 bits, uint64 span, int32 unit, uint32 omit_nan, STATE) {
    extern __shared__ __align__(16) uint32 memory[];
    const KeyedState state STATE_OF;
    add_buckets<V, LEVELS, THREADS, N>(codes, values, starts, buckets, bits, span, unit, omit_nan, state, memory);
}

template <class V, class Out, int LEVELS>
__global__ void __launch_bounds__(256) group_values(int32 unit, uint32 mean, const uint8* other, Out* values, STATE) {
    const KeyedState state STATE_OF;
    finish_groups<V, Out, LEVELS>(state, unit, mean, other, values);
}

template <class V, int LEVELS>
__global__ void __launch_bounds__(256) group_integers(uint64* low, int64* high, STATE) {
    const KeyedState state STATE_OF;
    finish_integers<V, LEVELS>(state, low, high);
}

template <class K, class V>
__global__ void __launch_bounds__(256) other_than_zero(const K* keys, const V* values, uint64 count, int64 least, uint64 range,
                                                       uint8* other) {
    note_other_than_zero(keys, values, count, Codes<K>{least, range}, other);
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS) listed_sums(const double* elements, const uint32* places, uint32 count, uint64* totals) {
    add_listed_elements(elements, places, count, totals);
}

template <class V, int LEVELS>
__global__ void __launch_bounds__(64) listed_values(int32 unit, uint32 mean, const uint32* groups, uint32 count, uint64* totals,
                                                    V* values, STATE) {
    const KeyedState state STATE_OF;
    finish_listed_groups<V, LEVELS>(state, unit, mean, groups, count, totals, values);
}

template <class K, class V, class Order>
__global__ void __launch_bounds__(256) least_orders(const K* keys, const V* values, uint64 count, int64 least, uint64 range, int64 flip,
                                                    int64 of_nan, uint32 equal_zeros, uint32 omit_nan, Order* best) {
    find_least(keys, values, count, Codes<K>{least, range}, flip, of_nan, equal_zeros, omit_nan, best);
}

template <class K, class V, class Order>
__global__ void __launch_bounds__(256) first_rows(const K* keys, const V* values, uint64 count, int64 least, uint64 range, int64 flip,
                                                  int64 of_nan, uint32 equal_zeros, uint32 omit_nan, const Order* best, uint64* rows) {
    find_first(keys, values, count, Codes<K>{least, range}, flip, of_nan, equal_zeros, omit_nan, best, rows);
}
