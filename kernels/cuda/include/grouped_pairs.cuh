// Rows of two elements of float64, a row a read of 16 bytes: their sum is rounded once by one addition.
#pragma once
#include "grouped_rows.cuh"

// The mean is half of the sum: a double again, or so small that the sum is exact. Where the sum is out of range, halves are added.
template <int FLIGHT>
__device__ void sum_pairs(const float64* data, uint64 rows, const Results<float64>& results) {
    const uint64 first = uint64(blockIdx.x) * blockDim.x * FLIGHT + threadIdx.x;
    Vector<float64> read[FLIGHT];
#pragma unroll
    for (int k = 0; k < FLIGHT; ++k)
        if (first + k * blockDim.x < rows) read[k] = Vector<float64>::load(data + (first + k * blockDim.x) * 2);
#pragma unroll
    for (int k = 0; k < FLIGHT; ++k) {
        const uint64 at = first + k * blockDim.x;
        if (at >= rows) return;
        const double a = read[k][0], b = read[k][1];
        double sum = a + b;
        if (results.divisor) sum = fabs(sum) < 0x1p1000 ? sum * 0.5 : a * 0.5 + b * 0.5;
        if (sum != sum) {
            sum = results.omit_nan ? mark<float64>() : nan_of<float64>();
            if (results.omit_nan) atomicAdd(results.marked, 1u);
        }
        results.values[at] = sum;
    }
}
