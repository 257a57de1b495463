// Reductions of CUB to many values behind a C interface, for benchmarks by shape. A macro chooses one:
//   BY_ROWS, BY_OFFSETS or BY_KEYS
//   ELEMENT, the type of the elements
// Each function returns a cudaError_t. Without `space` it says in `bytes` how much it wants.
#include <cstdint>

#define EXPORT extern "C" __attribute__((visibility("default")))

#ifdef BY_KEYS
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>

struct Plus {
    __host__ __device__ ELEMENT operator()(ELEMENT a, ELEMENT b) const { return a + b; }
};

EXPORT int peer_sort(void* space, std::size_t* bytes, const std::int32_t* keys, std::int32_t* sorted,
                         const ELEMENT* data, ELEMENT* out, std::int64_t count, void* stream) {
    return cub::DeviceRadixSort::SortPairs(space, *bytes, keys, sorted, data, out, count, 0, 32,
                                           static_cast<cudaStream_t>(stream));
}

EXPORT int peer_reduce(void* space, std::size_t* bytes, const std::int32_t* keys, std::int32_t* groups,
                           const ELEMENT* data, ELEMENT* out, std::int64_t* found, std::int64_t count, void* stream) {
    return cub::DeviceReduce::ReduceByKey(space, *bytes, keys, groups, data, out, found, Plus{}, count,
                                          static_cast<cudaStream_t>(stream));
}
#else
#include <cub/device/device_segmented_reduce.cuh>

#ifdef BY_ROWS
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

struct Times {
    std::int64_t length;
    __host__ __device__ std::int64_t operator()(std::int64_t row) const { return row * length; }
};

EXPORT int peer_rows(void* space, std::size_t* bytes, const ELEMENT* data, ELEMENT* out, std::int64_t rows,
                         std::int64_t length, void* stream) {
    const auto starts = thrust::make_transform_iterator(thrust::make_counting_iterator<std::int64_t>(0), Times{length});
    return cub::DeviceSegmentedReduce::Sum(space, *bytes, data, out, rows, starts, starts + 1,
                                           static_cast<cudaStream_t>(stream));
}
#else
EXPORT int peer_offsets(void* space, std::size_t* bytes, const ELEMENT* data, ELEMENT* out, std::int64_t segments,
                            const std::int64_t* offsets, void* stream) {
    return cub::DeviceSegmentedReduce::Sum(space, *bytes, data, out, segments, offsets, offsets + 1,
                                           static_cast<cudaStream_t>(stream));
}
#endif
#endif
