// Exact sums of floats in one launch: values, magnitudes, squares, values and squares, or products of two arrays. Any finite
// elements are added up without a rounding.
//
// Each thread adds up its tiles by floating-point arithmetic that is arranged so that nothing rounds (exact_window.cuh,
// exact_buckets.cuh), then moves its totals to integers (exact_digits.cuh), and the blocks add those to a total in memory
// (exact_total.cuh). Only integers are ever put together, so the order of threads, blocks, launches and GPUs cannot show.
#include "exact_chosen.cuh"

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

// Squares, alone or with values, or products of two arrays, by the sum that `survey` chose. Only products read `y`.
template <class T, int TERMS, int CHOICE, int THREADS, int BLOCKS, int FLIGHT, bool AHEAD, int BYTES>
__global__ void __launch_bounds__(THREADS, BLOCKS) exact_chosen(const T* x, const T* y, uint64 count, uint64* words, const uint32* choice) {
    if (*choice != CHOICE) return;
    using Sum = ChosenSum<T, TERMS, CHOICE, THREADS>;
    static_assert(BYTES == Sum::BYTES);
    extern __shared__ __align__(16) char memory[];
    Sum sum(memory, Total{words});
    add_tiles<FLIGHT, AHEAD>(ElementsOf<T, TERMS>::source(x, y, count), sum);
    sum.finish();
    Total{words}.note_count(count);
}

// One block of 1024 threads.
template <class T, int TERMS>
__global__ void __launch_bounds__(1024) survey(const T* x, const T* y, uint64 count, uint32* choice) {
    __shared__ uint32 wide[MOST_CHOICES - 1];
    if (threadIdx.x < MOST_CHOICES - 1) wide[threadIdx.x] = 0;
    __syncthreads();
    const uint32 chosen = choice_for<T, TERMS>(ElementsOf<T, TERMS>::source(x, y, count), wide);
    if (threadIdx.x == 0) *choice = chosen;
}
