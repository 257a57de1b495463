// Fills `out` with the elements `start` … `start + count` − 1 of a generated source.
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
__global__ void __launch_bounds__(256) generate(T* out, uint64 count, uint64 start, uint64 seed, double a, double b,
                                                double c, uint64 low, uint64 span, uint64 period, uint64 third) {
    const Plan plan{seed, a, b, c, low, span, period, third};
    const uint64 step = uint64(gridDim.x) * blockDim.x;
    for (uint64 k = uint64(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += step)
        element<T, METHOD>(out[k], plan, start + k);
}
