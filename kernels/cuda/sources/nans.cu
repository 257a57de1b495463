// How many elements are NaN, added to *count; with `replace`, each becomes −0, which adds nothing to any sum.
#include "block.cuh"
#include "reductions.cuh"

template <class T>
__device__ T negative_zero() {
    T zero;
    const uint64 bits = 1ull << (8 * sizeof(T) - 1);
    memcpy(&zero, &bits, sizeof(T));
    return zero;
}

template <class T>
__global__ void __launch_bounds__(256) nans(T* data, uint64 size, uint32 replace, uint64* count) {
    Integer64 found = Integer64::identity();
    const uint64 step = uint64(gridDim.x) * blockDim.x;
    for (uint64 k = uint64(blockIdx.x) * blockDim.x + threadIdx.x; k < size; k += step)
        if (is_nan(widen(data[k]))) {
            found.add(1);
            if (replace) data[k] = negative_zero<T>();
        }
    found = block_fold(found);
    if (threadIdx.x == 0 && found.total > 0) atomicAdd(count, uint64(found.total));
}
