// cub::DeviceReduce::ReduceByKey, and cub::DeviceRadixSort::SortPairs of int32 keys and float32 values, for
// benchmarks/groups_cuda.py. Each function returns a cudaError_t.
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>

struct Plus {
    __host__ __device__ float operator()(float a, float b) const { return a + b; }
};

extern "C" int peer_reduce(void* space, std::size_t* bytes, const std::int32_t* keys, std::int32_t* groups, const float* data, float* out,
                           std::int64_t* found, std::int64_t count, void* stream) {
    return cub::DeviceReduce::ReduceByKey(space, *bytes, keys, groups, data, out, found, Plus{}, count, static_cast<cudaStream_t>(stream));
}

extern "C" int peer_sort(void* space, std::size_t* bytes, const std::int32_t* keys, std::int32_t* sorted, const float* data, float* out,
                         std::int64_t count, void* stream) {
    return cub::DeviceRadixSort::SortPairs(space, *bytes, keys, sorted, data, out, count, 0, 32, static_cast<cudaStream_t>(stream));
}
