// Adds the number of NaN elements to found[0], and keeps in found[1] the least of it and the index of the first NaN.
#include "block.cuh"
#include "reductions.cuh"

template <class T>
__global__ void __launch_bounds__(256) nans(const T* data, uint64 size, uint64 first, uint64* found) {
    Integer64 count = Integer64::identity();
    const uint64 step = uint64(gridDim.x) * blockDim.x;
    for (uint64 k = uint64(blockIdx.x) * blockDim.x + threadIdx.x; k < size; k += step)
        if (is_nan(widen(data[k]))) {
            if (count.total == 0) atomicMin(found + 1, first + k);  // the thread's later elements have higher indices
            count.add(1);
        }
    count = block_fold(count);
    if (threadIdx.x == 0 && count.total > 0) atomicAdd(found, uint64(count.total));
}
