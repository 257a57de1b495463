// Squares of float64 as two float64 each, exactly: x² = p + e with p = x · x rounded and e what a fused multiplication leaves.
#pragma once
#include "exact_format.cuh"

// parts[i] and parts[count + i] become the two of values[i]. Both are the square itself of an infinity or a NaN, and 0 where they would
// not be exact, because |x| is not in 2^−480 … 2^500; then *outside becomes 1.
__device__ inline void split_squares(const float64* values, uint64 count, float64* parts, uint32* outside) {
    for (uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += uint64(gridDim.x) * blockDim.x) {
        const double x = values[at], size = fabs(x);
        double square = x * x, error = square;
        if (size < 0x1p500) {
            error = __fma_rn(x, x, -square);
            if (size < 0x1p-480 && size != 0) {
                square = error = 0;
                *outside = 1;
            }
        } else if (size < __longlong_as_double(0x7ff0000000000000ll)) {
            square = error = 0;
            *outside = 1;
        }
        parts[at] = square;
        parts[count + at] = error;
    }
}

// Squares of float32 have 48 bits.
__device__ inline void widen_squares(const float32* values, uint64 count, float64* squares) {
    for (uint64 at = uint64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += uint64(gridDim.x) * blockDim.x)
        squares[at] = float64(values[at]) * float64(values[at]);
}
