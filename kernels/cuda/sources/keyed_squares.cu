// Squares of floats as float64 numbers whose sums are those of the squares, for sums by key.
#include "keyed_squares.cuh"

__global__ void __launch_bounds__(256) square_parts(const float64* values, uint64 count, float64* parts, uint32* outside) {
    split_squares(values, count, parts, outside);
}

__global__ void __launch_bounds__(256) wide_squares(const float32* values, uint64 count, float64* squares) {
    widen_squares(values, count, squares);
}
