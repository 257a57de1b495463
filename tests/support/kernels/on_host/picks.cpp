// The kernels that pick elements and count bins, behind a C function: a launch by the name of its kernel, its blocks one after another,
// each of one warp.
#include "cuda.h"
#include "fibers.h"
// then the device code
#include "picks.cuh"

template <class T>
T& at(void* const* args, int place) { return *static_cast<T*>(args[place]); }

template <class Body>
void blocks(uint64 grid, const Body& body) {
    gridDim.x = unsigned(grid);
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) Warp::run(body);
    blockIdx.x = 0;
    gridDim.x = 1;
}

template <class T>
bool run(const char* kernel, uint64 grid, void* const* a) {
    const T* data = at<T*>(a, 0);
    if (!strcmp(kernel, "count_bins")) {
        const PickRows rows{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<uint64>(a, 5)};
        static BinCounters shared;
        const Bins bins{at<uint64*>(a, 6), at<uint16*>(a, 7), at<int>(a, 8), at<int>(a, 9), at<uint32>(a, 11), at<uint64>(a, 12)};
        blocks(grid, [&] { count_bins_of(data, rows, bins, at<int>(a, 10), at<uint32>(a, 13), at<uint64>(a, 14), shared, at<uint64*>(a, 15)); });
        return true;
    }
    using Key = SortingKey<T>;
    if (!strcmp(kernel, "keys_of_values")) return blocks(grid, [&] { keys_of_values_of(data, at<uint64>(a, 1), at<Key*>(a, 2)); }), true;
    if (!strcmp(kernel, "take_runs")) {
        const KeyRuns<Key> runs{at<Key*>(a, 0), at<uint64*>(a, 2), at<int64*>(a, 3), at<uint64>(a, 1), at<uint64>(a, 4)};
        return blocks(grid, [&] { take_runs_of(runs, at<uint32>(a, 5), at<uint64*>(a, 6)); }), true;
    }
    const PickRows rows{at<int64*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), at<uint64>(a, 4), at<uint64>(a, 5)};
    const Order order{at<uint32>(a, 8), at<int>(a, 9)};
    if (!strcmp(kernel, "count_picks"))
        blocks(grid, [&] { count_picks_of(data, rows, at<Key*>(a, 6), at<uint64>(a, 7), order, at<uint32*>(a, 10)); });
    else
        blocks(grid, [&] {
            write_picks_of(data, rows, at<Key*>(a, 6), at<uint64>(a, 7), order, at<uint32*>(a, 10), at<PickSlots*>(a, 11), at<Key*>(a, 12), at<int64*>(a, 13));
        });
    return true;
}

extern "C" bool pick_by_name(const char* kernel, const char* element, uint64 grid, void* const* args) {
    const auto is = [&](const char* other) { return !strcmp(element, other); };
    if (is("boolean")) return run<boolean>(kernel, grid, args);
    if (is("int8")) return run<int8>(kernel, grid, args);
    if (is("uint32")) return run<uint32>(kernel, grid, args);
    if (is("int64")) return run<int64>(kernel, grid, args);
    if (is("uint64")) return run<uint64>(kernel, grid, args);
    if (is("bfloat16")) return run<bfloat16>(kernel, grid, args);
    if (is("float64")) return run<float64>(kernel, grid, args);
    return false;
}
