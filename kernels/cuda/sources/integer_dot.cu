// Exact sums of the products of two arrays of integers or truth values, of any two widths, into a total as floats have
// (exact_total.cuh). A thread adds up its products in 128 bits where they are below 2^64; otherwise it adds up the
// negative products and the others apart, in 192 bits.
#include "block.cuh"
#include "exact_specials.cuh"
#include "exact_total.cuh"
#include "integers.cuh"

constexpr int ONE = 2148;  // the position of 1 in a total of products

template <class I>
__device__ bool below_zero(I x) {
    return x < I(0);
}

__device__ inline void add_words(const Total& total, const Integer192& sum, int sign) {
    total.add(sign * int128(sum.low), ONE);
    total.add(sign * int128(sum.middle), ONE + 64);
    total.add(sign * int128(sum.high), ONE + 128);
}

template <class T, class U>
__global__ void __launch_bounds__(256) integer_dot(const T* x, const U* y, uint64 count, uint64* words) {
    constexpr bool NARROW = sizeof(T) <= 4 && sizeof(U) <= 4;
    Integer128 narrow = Integer128::identity();
    Integer192 positive = Integer192::identity(), negative = Integer192::identity();
    const uint64 step = uint64(gridDim.x) * blockDim.x;
    for (uint64 k = uint64(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += step) {
        const auto a = widen(x[k]);
        const auto b = widen(y[k]);
        if constexpr (NARROW) {
            narrow.add(int128(a) * int128(b));
        } else {
            const uint128 product = uint128(magnitude(a)) * magnitude(b);
            const bool minus = below_zero(a) != below_zero(b);
            positive.add(minus ? 0 : product);
            negative.add(minus ? product : 0);
        }
    }
    const Total total{words};
    if constexpr (NARROW) {
        narrow = block_fold(narrow);
        if (threadIdx.x == 0) {
            total.add(int128(narrow.low), ONE);
            total.add(int128(int64(narrow.high)), ONE + 64);
        }
    } else {
        positive = block_fold(positive);
        negative = block_fold(negative);
        if (threadIdx.x == 0) {
            add_words(total, positive, 1);
            add_words(total, negative, -1);
        }
    }
    total.note(NOT_NEGATIVE_ZERO, 0);
    total.note_count(count);
}
