// One reduction of a peer library behind a C interface, chosen by macros:
//   PEER_CUB, PEER_CUB_NOT_GUARANTEED, PEER_CUB_GPU_TO_GPU or PEER_THRUST
//   OP_SUM, OP_MIN, OP_MAX, OP_ARGMIN or OP_ARGMAX
//   ELEMENT, the type of the elements; RESULT, the type of a sum, a minimum or a maximum
// Built by nvcc at first use (build.py). CUB leaves its result on the device, Thrust returns it to the host.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>
#include <cstring>
#include <cuda/std/functional>

using Element = ELEMENT;
using Result = RESULT;

// Adds in the type of the result, whatever the elements are; CUB recognises it and has a tuning for it.
using Add = cuda::std::plus<Result>;

#ifdef PEER_THRUST
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/reduce.h>
#include <thrust/system/system_error.h>

static int reduce(void*, std::size_t& bytes, const Element* data, void* result, std::int64_t n, cudaStream_t stream) {
    bytes = 1;  // Thrust asks for memory by itself, in every call
    if (result == nullptr) return cudaSuccess;
    const auto policy = thrust::cuda::par.on(stream);
    const Element* const last = data + n;
    try {
#if defined(OP_SUM)
        const Result total = thrust::reduce(policy, data, last, Result(0), Add{});
        std::memcpy(result, &total, sizeof total);
#else
#if defined(OP_MIN) || defined(OP_ARGMIN)
        const std::int64_t index = thrust::min_element(policy, data, last) - data;
#else
        const std::int64_t index = thrust::max_element(policy, data, last) - data;
#endif
#if defined(OP_ARGMIN) || defined(OP_ARGMAX)
        std::memcpy(result, &index, sizeof index);
#else
        return cudaMemcpyAsync(result, data + index, sizeof(Element), cudaMemcpyDeviceToHost, stream)
               || cudaStreamSynchronize(stream);
#endif
#endif
    } catch (const thrust::system_error& error) {
        return error.code().value();
    }
    return cudaSuccess;
}
#else
#include <cub/device/device_reduce.cuh>
#include <cub/version.cuh>

#if defined(PEER_CUB_NOT_GUARANTEED)
#define DETERMINISM not_guaranteed
#elif defined(PEER_CUB_GPU_TO_GPU)
#define DETERMINISM gpu_to_gpu
#endif

#ifdef DETERMINISM
#include <cuda/execution.determinism.h>
#include <cuda/execution.require.h>
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <new>

// Hands out the caller's workspace. While there is none it notes how much is wanted, and refuses.
struct Workspace {
    void* space;
    std::size_t* bytes;
    void* allocate(cuda::stream_ref, std::size_t wanted, std::size_t) {
        if (space == nullptr) *bytes = wanted;
        if (space == nullptr || wanted > *bytes) throw std::bad_alloc();
        return space;
    }
    void deallocate(cuda::stream_ref, void*, std::size_t, std::size_t) noexcept {}
    void* allocate_sync(std::size_t, std::size_t) { throw std::bad_alloc(); }
    void deallocate_sync(void*, std::size_t, std::size_t) noexcept {}
    friend bool operator==(const Workspace& a, const Workspace& b) { return a.space == b.space; }
    friend bool operator!=(const Workspace& a, const Workspace& b) { return a.space != b.space; }
};
#endif

static int reduce(void* space, std::size_t& bytes, const Element* data, void* result, std::int64_t n,
                  cudaStream_t stream) {
#ifdef DETERMINISM
    namespace execution = cuda::std::execution;
    const execution::prop<cuda::mr::get_memory_resource_t, Workspace> memory{{}, {space, &bytes}};
    const auto required = cuda::execution::require(cuda::execution::determinism::DETERMINISM);
    const execution::env environment{cuda::stream_ref{stream}, memory, required};
    const int status = cub::DeviceReduce::Sum(data, static_cast<Result*>(result), n, environment);
    return space == nullptr && status == cudaErrorMemoryAllocation ? cudaSuccess : status;
#elif defined(OP_SUM)
    return cub::DeviceReduce::Reduce(space, bytes, data, static_cast<Result*>(result), n, Add{}, Result(0), stream);
#elif defined(OP_MIN)
    return cub::DeviceReduce::Min(space, bytes, data, static_cast<Result*>(result), n, stream);
#elif defined(OP_MAX)
    return cub::DeviceReduce::Max(space, bytes, data, static_cast<Result*>(result), n, stream);
#else
    // The index first, where the caller looks for it; the extremum itself after it.
    const auto index = static_cast<std::int64_t*>(result);
    const auto extremum = reinterpret_cast<Element*>(index + 1);
#if defined(OP_ARGMIN)
    return cub::DeviceReduce::ArgMin(space, bytes, data, extremum, index, n, stream);
#else
    return cub::DeviceReduce::ArgMax(space, bytes, data, extremum, index, n, stream);
#endif
#endif
}
#endif

#ifdef _WIN32
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

// Each returns 0 or a cudaError_t. `result` is 16 bytes: on the device for CUB, on the host for Thrust.
EXPORT int peer_use_device(int index) { return cudaSetDevice(index); }

EXPORT int peer_workspace(std::size_t* bytes, std::int64_t n) {
    return reduce(nullptr, *bytes, nullptr, nullptr, n, nullptr);
}

EXPORT int peer_run(void* space, std::size_t bytes, const void* data, void* result, std::int64_t n, void* stream) {
    return reduce(space, bytes, static_cast<const Element*>(data), result, n, static_cast<cudaStream_t>(stream));
}

EXPORT const char* peer_error(int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }
