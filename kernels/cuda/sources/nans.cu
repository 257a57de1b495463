// How many elements are NaN, added to found[0], and the index of the first, the least of which stays in found[1]; with
// `replace`, each becomes −0, which adds nothing to any sum.
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
__global__ void __launch_bounds__(256) nans(T* data, uint64 size, uint64 first, uint32 replace, uint64* found) {
    Integer64 count = Integer64::identity();
    const uint64 step = uint64(gridDim.x) * blockDim.x;
    for (uint64 k = uint64(blockIdx.x) * blockDim.x + threadIdx.x; k < size; k += step)
        if (is_nan(widen(data[k]))) {
            if (count.total == 0) atomicMin(found + 1, first + k);  // later ones of this thread come after
            count.add(1);
            if (replace) data[k] = negative_zero<T>();
        }
    count = block_fold(count);
    if (threadIdx.x == 0 && count.total > 0) atomicAdd(found, uint64(count.total));
}
