// The kernels of windows, behind a C function: a launch by the name of its kernel, its blocks one after another, each of one warp.
#include "cuda.h"
#include "fibers.h"
// then the device code
#include "window_scan.cuh"

template <class T>
T& at(void* const* args, int place) { return *static_cast<T*>(args[place]); }

template <class Body>
void blocks(uint64 grid, const Body& body) {
    gridDim.x = unsigned(grid);
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) Warp::run(body);
    blockIdx.x = 0;
    gridDim.x = 1;
}

Windows windows(void* const* a, int from) { return {at<int64*>(a, from), at<int64*>(a, from + 1), at<uint64>(a, from + 2), at<uint64>(a, from + 3), at<uint64>(a, from + 4)}; }

template <class T, class R>
bool of_elements(const char* name, uint64 grid, void* const* a) {
    static uint128 wide[32], wide_turned[32 * (ITEMS + 1)];
    static uint64 narrow[32], narrow_turned[32 * (ITEMS + 1)];
    const T* data = at<T*>(a, 0);
    const uint64 count = at<uint64>(a, 1);
    const auto is = [&](const char* other) { return !strcmp(name, other); };
    using Key = SortingKey<T>;
    if constexpr (is_real<T>) if (is("extents")) return blocks(grid, [&] { extents_of(data, count, at<Extents*>(a, 2)); }), true;
    if (is("extremes_of_blocks") || is("extremes_of_windows")) {
        const LeastOrder order{at<uint32>(a, 2), at<uint32>(a, 3), at<int>(a, 4)};
        Key *up_to = at<Key*>(a, 5), *from = at<Key*>(a, 6), *least = at<Key*>(a, 7);
        if (is("extremes_of_blocks")) return blocks(grid, [&] { extremes_of_blocks_of(data, count, order, up_to, from, least); }), true;
        return blocks(grid, [&] { extremes_of_windows_of(data, count, order, up_to, from, least, windows(a, 8), at<uint64*>(a, 13)); }), true;
    }
    const FixedPoint fixed{at<int>(a, 2), at<uint32>(a, 3)};
    const Marks marks{at<uint32>(a, 2), at<uint32>(a, 3)};
    if (is("sum_tiles")) return blocks(grid, [&] { sum_tiles_of(data, count, fixed, wide, at<uint128*>(a, 4)); }), true;
    if (is("running_sums")) return blocks(grid, [&] { running_sums_of(data, count, fixed, at<uint128*>(a, 4), wide, wide_turned, at<uint128*>(a, 5)); }), true;
    if (is("scanned_windows")) {
        const TileSums tiles{at<uint32*>(a, 7), at<uint128*>(a, 8)};
        return blocks(grid, [&] { scanned_windows_of<T, R, 32>(data, count, fixed, at<uint64>(a, 4), at<uint64>(a, 5), at<uint32>(a, 6), tiles, at<double*>(a, 9)); }), true;
    }
    if (is("mark_tiles")) return blocks(grid, [&] { sum_tiles_of(data, count, marks, narrow, at<uint64*>(a, 4)); }), true;
    if (is("running_marks")) return blocks(grid, [&] { running_sums_of(data, count, marks, at<uint64*>(a, 4), narrow, narrow_turned, at<uint64*>(a, 5)); }), true;
    return false;
}

template <class R>
bool values(uint64 grid, void* const* a) {
    const Specials specials{at<uint64*>(a, 1), at<uint64*>(a, 2), at<uint64*>(a, 3), at<uint64*>(a, 4), at<uint32>(a, 5)};
    blocks(grid, [&] { window_values_of<R>(at<uint128*>(a, 0), specials, windows(a, 6), at<uint64>(a, 11), at<int>(a, 12), at<uint32>(a, 13), at<double*>(a, 14)); });
    return true;
}
template <class U>
bool before(uint64 grid, void* const* a) {
    static U shared[32];
    blocks(grid, [&] { sum_tiles_before_of(at<U*>(a, 0), at<uint64>(a, 1), shared); });
    return true;
}
template <class Key>
bool doubled(uint64 grid, void* const* a) {
    blocks(grid, [&] { double_runs_of(at<Key*>(a, 0), at<uint64>(a, 1), at<uint64>(a, 2), at<Key*>(a, 3)); });
    return true;
}

extern "C" bool window_by_name(const char* name, const char* types, uint64 grid, void* const* a) {
    const auto is = [&](const char* other, const char* of) { return !strcmp(name, other) && !strcmp(types, of); };
    const auto of = [&](const char* other) { return !strncmp(types, other, strlen(other)) && strchr(",", types[strlen(other)]); };
    if (is("sum_tiles_before", "uint128")) return before<uint128>(grid, a);
    if (is("sum_tiles_before", "uint64")) return before<uint64>(grid, a);
    if (is("window_words", "uint128")) return blocks(grid, [&] { window_words_of(at<uint128*>(a, 0), windows(a, 1), at<uint64>(a, 6), at<uint64*>(a, 7), at<uint64*>(a, 8)); }), true;
    if (is("window_words", "uint64")) return blocks(grid, [&] { window_marks_of(at<uint64*>(a, 0), windows(a, 1), at<uint64>(a, 6), at<uint64*>(a, 7)); }), true;
    if (is("window_counts", "uint64")) return blocks(grid, [&] { window_counts_of(windows(a, 1), at<uint64>(a, 6), at<uint64*>(a, 0), at<int64*>(a, 7)); }), true;
    if (is("double_runs", "uint8")) return doubled<uint8>(grid, a);
    if (is("double_runs", "uint16")) return doubled<uint16>(grid, a);
    if (is("double_runs", "uint32")) return doubled<uint32>(grid, a);
    if (is("double_runs", "uint64")) return doubled<uint64>(grid, a);
    if (is("window_values", "bfloat16")) return values<bfloat16>(grid, a);
    if (is("window_values", "float32")) return values<float32>(grid, a);
    if (is("window_values", "float64")) return values<float64>(grid, a);
    if (of("boolean")) return of_elements<boolean, float64>(name, grid, a);
    if (of("int8")) return of_elements<int8, float64>(name, grid, a);
    if (of("int64")) return of_elements<int64, float64>(name, grid, a);
    if (of("uint64")) return of_elements<uint64, float64>(name, grid, a);
    if (of("bfloat16")) return of_elements<bfloat16, bfloat16>(name, grid, a);
    if (of("float32")) return of_elements<float32, float32>(name, grid, a);
    if (of("float64")) return of_elements<float64, float64>(name, grid, a);
    return false;
}
