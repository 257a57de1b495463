// Fills `out` with the elements number `start` … `start + count` − 1 of a part of a generated source: runs of `width` neighbours, of which
// the first begins at element `first`, and two neighbours begin `pitch` elements apart.
#include "generate.cuh"

template <class T, int METHOD>
__device__ void element(T& out, const Plan& plan, uint64 i) {
    if constexpr (METHOD == ALL_EXPONENTS) {
        set_bits(out, float_bits<8 * sizeof(T), Format<T>::PRECISION - 1>(plan, i));
    } else if constexpr (is_real<T>) {
        round_to(out, real_element<METHOD>(plan, i));
    } else if constexpr (is_same<T, boolean>) {
        out.byte = whole_element<METHOD>(plan, i) != 0;
    } else {
        out = T(whole_element<METHOD>(plan, i));
    }
}

template <class T, int METHOD>
__global__ void __launch_bounds__(256) generate(T* out, uint64 count, uint64 start, uint64 first, uint64 width, uint64 pitch,
                                                uint64 seed, double a, double b, double c, uint64 low, uint64 span, uint64 period,
                                                uint64 third) {
    const Plan plan{seed, a, b, c, low, span, period, third};
    const uint64 step = uint64(gridDim.x) * blockDim.x;
    const uint64 runs = step / width, rest = step % width, begin = uint64(blockIdx.x) * blockDim.x + threadIdx.x;
    uint64 run = (start + begin) / width, within = (start + begin) % width;
    for (uint64 k = begin; k < count; k += step) {
        element<T, METHOD>(out[k], plan, first + run * pitch + within);
        run += runs;
        within += rest;
        if (within >= width) within -= width, ++run;
    }
}
