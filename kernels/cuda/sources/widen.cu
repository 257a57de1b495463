// Converts floats to a wider format, which changes no value.
#include "elements.cuh"

template <class Narrow, class Real>
__global__ void __launch_bounds__(256) widened(const Narrow* narrow, uint64 count, Real* wide) {
    const uint64 step = uint64(gridDim.x) * blockDim.x;
    for (uint64 k = uint64(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += step) wide[k] = Real(widen(narrow[k]));
}
