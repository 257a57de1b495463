// Exact reductions of arrays that are on the GPU already, to values that stay there: one launch adds up and rounds, and the
// host neither waits nor looks.
//
// The blocks add to a total in memory as in exact.cu. The last to do so rounds it (exact_finish.cuh) and leaves the total as it
// was found: all 0. So launches of one stream may share a total without clearing it.
#include "exact_block_finish.cuh"
#include "exact_members.cuh"
#include "exact_sparse.cuh"
#include "grouped_spans.cuh"

constexpr int LIMBS_OF_PRODUCTS = Total::DIGITS + FinishRoom::PRODUCTS;

// The total of a launch, or of one value: its limbs, and behind them how many blocks have added to it.
template <bool BOTH, bool PRODUCTS, bool SIGNED>
struct Account {
    static constexpr int LIMBS = BOTH ? Total::OF_VALUES + LIMBS_OF_PRODUCTS : PRODUCTS ? LIMBS_OF_PRODUCTS : Total::OF_VALUES;
    static constexpr int WORDS = LIMBS + 1;
    static constexpr int BYTES = BOTH ? 8 * LIMBS + int(sizeof(BlockFinishRoom)) : FinishRoom::bytes(LIMBS, BOTH, PRODUCTS);
    uint64* words;

    // To be called by all threads of a block that has added its part; the last of `blocks` writes the value.
    template <class Out>
    __device__ void close(uint32 blocks, Out* out, uint64 finish, uint64 count, uint64 ddof, char* memory) const {
        __shared__ bool last;
        __shared__ Ends ends[2];
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) last = blocks == 1 || atomicAdd(words + LIMBS, uint64(1)) == blocks - 1;
        __syncthreads();
        if (!last) return;
        __threadfence();
        int64* const limbs = reinterpret_cast<int64*>(memory);
        if (threadIdx.x < 2) ends[threadIdx.x] = {LIMBS, -1};
        __syncthreads();
        for (int k = threadIdx.x; k < LIMBS; k += blockDim.x) {
            limbs[k] = int64(atomicExch(words + k, uint64(0)));
            const bool second = BOTH && k >= Total::OF_VALUES;
            const int place = k - Total::DIGITS - (second ? Total::OF_VALUES : 0);
            if (place < 0 || limbs[k] == 0) continue;
            atomicMin(&ends[second].low, place);
            atomicMax(&ends[second].high, place);
        }
        if (threadIdx.x == 0) words[LIMBS] = 0;
        __syncthreads();
        if constexpr (BOTH) {
            finish_by_block(out, limbs, ends, finish, count, ddof, *reinterpret_cast<BlockFinishRoom*>(limbs + LIMBS));
        } else if (threadIdx.x == 0) {
            Out value;
            finish_total<Out, BOTH, PRODUCTS, SIGNED>(value, limbs, ends, finish, count, ddof,
                                                      reinterpret_cast<uint32*>(limbs + LIMBS));
            *out = value;
        }
        __syncthreads();
    }
};

template <int TERMS>
using AccountOf = Account<TERMS == MOMENTS, TERMS == SQUARES || TERMS == PRODUCTS, TERMS == VALUES || TERMS == PRODUCTS>;

template <class T, int TERMS, int THREADS, int BLOCKS, int FLIGHT, bool AHEAD, int BYTES>
__global__ void __launch_bounds__(THREADS, BLOCKS) reduced(const T* data, uint64 count, uint64* words, T* out, uint64 finish,
                                                           uint64 ddof) {
    static_assert(BYTES == Sum<T, TERMS, THREADS>::BYTES && AccountOf<TERMS>::BYTES <= BYTES * THREADS);
    extern __shared__ __align__(16) char memory[];
    Sum<T, TERMS, THREADS> sum(memory, Total{words});
    for_each_tile<FLIGHT, AHEAD>(Vectors<T>(data, count), sum);
    finish_sparse(sum);
    AccountOf<TERMS>{words}.close(gridDim.x, out, finish, count, ddof, memory);
}

template <class T, int THREADS, int BLOCKS, int FLIGHT, bool AHEAD, int BYTES>
__global__ void __launch_bounds__(THREADS, BLOCKS) reduced_dot(const T* x, const T* y, uint64 count, uint64* words, T* out) {
    using Of = AccountOf<PRODUCTS>;
    static_assert(BYTES == DotSum<T, THREADS>::BYTES && Of::BYTES <= BYTES * THREADS);
    extern __shared__ __align__(16) char memory[];
    DotSum<T, THREADS> sum(memory, Total{words});
    for_each_tile<FLIGHT, AHEAD>(VectorPairs<T>(x, y, count), sum);
    finish_sparse(sum);
    Of{words}.close(gridDim.x, out, SUM, count, 0, memory);
}

// Rounds the total that the launches before have made, by one block (exact.cu has the kernels of long arrays).
template <class T, int TERMS>
__global__ void reduced_end(uint64* words, T* out, uint64 finish, uint64 count, uint64 ddof) {
    __shared__ __align__(16) char memory[AccountOf<TERMS>::BYTES];
    AccountOf<TERMS>{words}.close(1, out, finish, count, ddof, memory);
}

// `values` values of `count` elements each, of which value v begins at v · outer and has its elements `stride` apart. With
// `marked`, only those that are marked in `out` (grouped_lanes.cuh), if *marked says that there are any. `cleared` is made 0
// unless it is null: the marks of a launch to come. There is room for a total of each block or of each value, whichever are
// fewer.
template <class T, int TERMS, int THREADS, int BYTES>
__global__ void __launch_bounds__(THREADS, 4) reduced_each(const T* data, uint64 outer, uint64 stride, uint64 count, uint64 values,
                                                        const uint32* marked, uint32* cleared, uint64* words, T* out,
                                                        uint64 finish, uint64 ddof) {
    using Of = AccountOf<TERMS>;
    static_assert(BYTES == Sum<T, TERMS, THREADS>::BYTES && Of::BYTES <= BYTES * THREADS);
    extern __shared__ __align__(16) char memory[];
    if (cleared && blockIdx.x == 0 && threadIdx.x == 0) *cleared = 0;
    if (marked && *marked == 0) return;
    const uint32 parts = values < gridDim.x ? uint32(gridDim.x / values) : 1;
    const uint64 step = gridDim.x / parts;
    for (uint64 value = blockIdx.x / parts; value < values; value += step) {
        if (marked && bits_of(out[value]) != bits_of(mark<T>())) continue;
        const Of account{words + (parts > 1 ? value : blockIdx.x) * Of::WORDS};
        add_members<Sum<T, TERMS, THREADS>, THREADS>(data + value * outer, count, stride, blockIdx.x % parts, parts, account.words,
                                                    memory);
        account.close(parts, out + value, finish, count, ddof, memory);
    }
}

// Sums or means of `count` rows of `length` elements, which begin and end at multiples of 16 bytes: each by a warp. A row that
// the window of its warp does not hold is added up by the block, as a whole array is: so nothing is left to another launch.
// There is room for a total of each block.
template <class T, int FLIGHT, int THREADS, int BYTES>
__global__ void __launch_bounds__(THREADS, 4) reduced_rows(const T* data, uint64 count, uint64 length, uint64* words, T* out,
                                                        uint64 finish) {
    using Of = AccountOf<VALUES>;
    static_assert(BYTES == Sum<T, VALUES, THREADS>::BYTES && Of::BYTES <= BYTES * THREADS);
    extern __shared__ __align__(16) char memory[];
    __shared__ uint32 left;  // rows that are marked
    if (threadIdx.x == 0) left = 0;
    __syncthreads();
    const Results<T> results{out, &left, finish, 0, false};
    const Spans spans{nullptr, count, count * length, length, length, length, 1};
    SpansAgent<T, VALUES, 32, 1, true, FLIGHT, 1>{data, spans, results}.run();
    __syncthreads();
    if (left == 0) return;
    constexpr int ROWS = THREADS / 32;
    const Of account{words + blockIdx.x * Of::WORDS};
    for (uint64 row = uint64(blockIdx.x) * ROWS; row < uint64(blockIdx.x + 1) * ROWS && row < count; ++row) {
        if (bits_of(out[row]) != bits_of(mark<T>())) continue;
        add_members<Sum<T, VALUES, THREADS>, THREADS>(data + row * length, length, 1, 0, 1, account.words, memory);
        account.close(1, out + row, finish, length, 0, memory);
    }
}
