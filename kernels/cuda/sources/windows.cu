// Values of windows that move along an array; windows.cuh and window_scan.cuh say how.
#include "window_scan.cuh"

constexpr int TILE_THREADS = 256, SCAN_THREADS = 1024;

template <class T>
__global__ void __launch_bounds__(256) extents(const T* data, uint64 count, Extents* all) {
    extents_of(data, count, all);
}

template <class T>
__global__ void __launch_bounds__(TILE_THREADS) sum_tiles(const T* data, uint64 count, int lowest, uint32 magnitudes, uint128* totals) {
    __shared__ uint128 shared[TILE_THREADS / 32];
    sum_tiles_of(data, count, FixedPoint{lowest, magnitudes}, shared, totals);
}
template <class T>
__global__ void __launch_bounds__(TILE_THREADS) running_sums(const T* data, uint64 count, int lowest, uint32 magnitudes, const uint128* totals, uint128* running) {
    __shared__ uint128 shared[TILE_THREADS / 32], turned[TILE_THREADS * (ITEMS + 1)];
    running_sums_of(data, count, FixedPoint{lowest, magnitudes}, totals, shared, turned, running);
}
template <class T, class R>
__global__ void __launch_bounds__(TILE_THREADS) scanned_windows(const T* data, uint64 count, int lowest, uint32 magnitudes, uint64 rows, uint64 ahead,
                                                                uint32 divides, uint32* said, uint128* sums, double* values) {
    scanned_windows_of<T, R, TILE_THREADS>(data, count, FixedPoint{lowest, magnitudes}, rows, ahead, divides, TileSums{said, sums}, values);
}
template <class T>
__global__ void __launch_bounds__(TILE_THREADS) mark_tiles(const T* data, uint64 count, uint32 which, uint32 omit, uint64* totals) {
    __shared__ uint64 shared[TILE_THREADS / 32];
    sum_tiles_of(data, count, Marks{which, omit}, shared, totals);
}
template <class T>
__global__ void __launch_bounds__(TILE_THREADS) running_marks(const T* data, uint64 count, uint32 which, uint32 omit, const uint64* totals, uint64* running) {
    __shared__ uint64 shared[TILE_THREADS / 32], turned[TILE_THREADS * (ITEMS + 1)];
    running_sums_of(data, count, Marks{which, omit}, totals, shared, turned, running);
}
template <class U>
__global__ void __launch_bounds__(SCAN_THREADS) sum_tiles_before(U* totals, uint64 tiles) {
    __shared__ U shared[SCAN_THREADS / 32];
    sum_tiles_before_of(totals, tiles, shared);
}

template <class R>
__global__ void __launch_bounds__(256) window_values(const uint128* running, const uint64* nans, const uint64* positive, const uint64* negative,
                                                     const uint64* not_negative_zero, uint32 omit, const int64* begins, const int64* ends, uint64 length,
                                                     uint64 rows, uint64 ahead, uint64 count, int lowest, uint32 divides, double* values) {
    window_values_of<R>(running, Specials{nans, positive, negative, not_negative_zero, omit}, Windows{begins, ends, length, rows, ahead}, count, lowest, divides,
                        values);
}
template <class U>
__global__ void __launch_bounds__(256) window_words(const U* running, const int64* begins, const int64* ends, uint64 length, uint64 rows, uint64 ahead,
                                                    uint64 count, uint64* low, uint64* high) {
    const Windows windows{begins, ends, length, rows, ahead};
    if constexpr (sizeof(U) == 16) window_words_of(running, windows, count, low, high);
    else window_marks_of(running, windows, count, low);
}
template <class U>
__global__ void __launch_bounds__(256) window_counts(const U* left_out, const int64* begins, const int64* ends, uint64 length, uint64 rows, uint64 ahead,
                                                     uint64 count, int64* counts) {
    window_counts_of(Windows{begins, ends, length, rows, ahead}, count, left_out, counts);
}

template <class T>
__global__ void __launch_bounds__(256) extremes_of_blocks(const T* data, uint64 count, uint32 descending, uint32 magnitudes, int shift, SortingKey<T>* up_to,
                                                          SortingKey<T>* from, SortingKey<T>* least) {
    extremes_of_blocks_of(data, count, LeastOrder{descending, magnitudes, shift}, up_to, from, least);
}
template <class Key>
__global__ void __launch_bounds__(256) double_runs(const Key* keys, uint64 count, uint64 half, Key* doubled) {
    double_runs_of(keys, count, half, doubled);
}
template <class T>
__global__ void __launch_bounds__(256) extremes_of_windows(const T* data, uint64 count, uint32 descending, uint32 magnitudes, int shift,
                                                           const SortingKey<T>* up_to, const SortingKey<T>* from, const SortingKey<T>* runs,
                                                           const int64* begins, const int64* ends, uint64 length, uint64 rows, uint64 ahead,
                                                           uint64* values) {
    extremes_of_windows_of(data, count, LeastOrder{descending, magnitudes, shift}, up_to, from, runs, Windows{begins, ends, length, rows, ahead}, values);
}
