// cub::DeviceSegmentedReduce::Sum of float32 by offsets, for benchmarks/shapes_cuda.py. Each function returns a cudaError_t.
#include <cstdint>
#include <cub/device/device_segmented_reduce.cuh>

extern "C" int peer_run(void* space, std::size_t* bytes, const float* data, float* out, std::int64_t segments,
                        const std::int64_t* offsets, void* stream) {
    return cub::DeviceSegmentedReduce::Sum(space, *bytes, data, out, segments, offsets, offsets + 1,
                                           static_cast<cudaStream_t>(stream));
}
