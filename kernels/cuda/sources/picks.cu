// Elements that are picked, and counts of bins; picks.cuh says how.
#include "picks.cuh"

template <class T>
__global__ void __launch_bounds__(256) count_picks(const T* data, const int64* offsets, uint64 length, uint64 total, uint64 rows, uint64 longest,
                                                   const SortingKey<T>* bounds, uint64 step, uint32 how, int shift, uint32* counts) {
    count_picks_of(data, PickRows{offsets, length, total, rows, longest}, bounds, step, Order{how, shift}, counts);
}

template <class T>
__global__ void __launch_bounds__(256) write_picks(const T* data, const int64* offsets, uint64 length, uint64 total, uint64 rows, uint64 longest,
                                                   const SortingKey<T>* bounds, uint64 step, uint32 how, int shift, const uint32* counts,
                                                   const PickSlots* slots, SortingKey<T>* elements, int64* places) {
    write_picks_of(data, PickRows{offsets, length, total, rows, longest}, bounds, step, Order{how, shift}, counts, slots, elements, places);
}

template <class T>
__global__ void __launch_bounds__(256) count_bins(const T* data, const int64* offsets, uint64 length, uint64 total, uint64 rows, uint64 longest,
                                                  const uint64* edges, const uint16* starts, int bins, int known, int cells, uint32 shift,
                                                  uint64 last, uint32 spread, uint64 step, uint64* counts) {
    __shared__ BinCounters shared;
    count_bins_of(data, PickRows{offsets, length, total, rows, longest}, Bins{edges, starts, bins, known, shift, last}, cells, spread, step, shared,
                  counts);
}

template <class T>
__global__ void __launch_bounds__(256) keys_of_values(const T* data, uint64 count, SortingKey<T>* keys) {
    keys_of_values_of(data, count, keys);
}
template <class T>
__global__ void __launch_bounds__(256) take_runs(const SortingKey<T>* keys, uint64 count, const uint64* ids, const int64* ends, uint64 none,
                                                 uint32 longest, uint64* taken) {
    take_runs_of(KeyRuns<SortingKey<T>>{keys, ids, ends, count, none}, longest, taken);
}
