// Exact sums of floats in one launch: values, magnitudes, squares, values and squares, or products of two arrays. Any finite
// elements are added up without a rounding.
//
// Each thread adds up its tiles by floating-point arithmetic that is arranged so that nothing rounds (exact_window.cuh,
// exact_buckets.cuh), then moves its totals to integers (exact_digits.cuh), and the blocks add those to a total in memory
// (exact_total.cuh). Only integers are ever put together, so the order of threads, blocks, launches and GPUs cannot show.
#include "exact_dot.cuh"
#include "exact_squares.cuh"
#include "exact_sums.cuh"

// The launch provides BYTES of shared memory a thread, which are checked against what is used.
template <class T, int TERMS, int THREADS, int BLOCKS, int FLIGHT, bool AHEAD, int BYTES>
__global__ void __launch_bounds__(THREADS, BLOCKS) exact(const T* data, uint64 count, uint64* words) {
    static_assert(BYTES == Sum<T, TERMS, THREADS>::BYTES);
    extern __shared__ __align__(16) char memory[];
    Sum<T, TERMS, THREADS> sum(memory, Total{words});
    for_each_tile<FLIGHT, AHEAD>(Vectors<T>(data, count), sum);
    sum.finish();
    Total{words}.note_count(count);
}

template <class T, int THREADS, int BLOCKS, int FLIGHT, bool AHEAD, int BYTES>
__global__ void __launch_bounds__(THREADS, BLOCKS) exact_dot(const T* x, const T* y, uint64 count, uint64* words) {
    static_assert(BYTES == DotSum<T, THREADS>::BYTES);
    extern __shared__ __align__(16) char memory[];
    DotSum<T, THREADS> sum(memory, Total{words});
    for_each_tile<FLIGHT, AHEAD>(VectorPairs<T>(x, y, count), sum);
    sum.finish();
    Total{words}.note_count(count);
}

// Squares of float32, alone or with values: in windows unless *wide, which `survey` says, and else in buckets.
template <int TERMS, int THREADS, int BLOCKS, int FLIGHT, bool AHEAD, int BYTES>
__global__ void __launch_bounds__(THREADS, BLOCKS) exact_near(const float32* data, uint64 count, uint64* words, const uint32* wide) {
    if (*wide) return;
    static_assert(BYTES == Sum<float32, TERMS, THREADS>::BYTES);
    extern __shared__ __align__(16) char memory[];
    Sum<float32, TERMS, THREADS> sum(memory, Total{words});
    for_each_tile<FLIGHT, AHEAD>(Vectors<float32>(data, count), sum);
    sum.finish();
    Total{words}.note_count(count);
}

template <int TERMS, int THREADS, int BLOCKS, int FLIGHT, bool AHEAD, int BYTES>
__global__ void __launch_bounds__(THREADS, BLOCKS) exact_anywhere(const float32* data, uint64 count, uint64* words,
                                                                  const uint32* wide) {
    if (!*wide) return;
    using Sum = typename Either<TERMS == MOMENTS, MomentBucketSum<THREADS>, SquareBucketSum<THREADS>>::Type;
    static_assert(BYTES == Sum::BYTES);
    extern __shared__ __align__(16) char memory[];
    Sum sum(memory, Total{words});
    for_each_tile<FLIGHT, AHEAD>(Vectors<float32>(data, count), sum);
    sum.finish();
    Total{words}.note_count(count);
}

// One block of 1024 threads.
template <class T>
__global__ void __launch_bounds__(1024) survey(const T* data, uint64 count, uint32* wide) {
    __shared__ uint32 places;
    if (threadIdx.x == 0) places = 0;
    __syncthreads();
    const bool found = is_wide(Vectors<T>(data, count), places);
    if (threadIdx.x == 0) *wide = found;
}
