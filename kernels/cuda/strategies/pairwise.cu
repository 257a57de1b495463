// A balanced tree over all elements: each block folds a tile of 2048 by pairs, halves of halves, and launch after
// launch folds the tiles' partials the same way until one is left. No element goes through more than about log₂ n
// additions, so the error grows with the logarithm of n.
//
// launch: threads=256 tile=2048
// ops: sums
// dtypes: float
// error: γ_(log₂ n + 22) Σ|x| in the accumulator's precision (float64 for float64 and for squares of bfloat16 and float32, else float32), rounded once to the dtype
#include "block.cuh"
#include "traverse.cuh"

constexpr int THREADS = 256, EACH = 8, TILE = THREADS * EACH;

template <class A>
__device__ A fold_pairs(A (&a)[EACH]) {
#pragma unroll
    for (int half = EACH / 2; half > 0; half /= 2)
#pragma unroll
        for (int k = 0; k < half; ++k) a[k].merge(a[k + half]);
    return block_fold(a[0]);
}

template <class R, class A = typename R::Accumulator, class T = typename R::Element>
__global__ void __launch_bounds__(THREADS)
pairwise(const T* data, uint64 count, uint64 first, uint32 omit_nan, A* partials, uint32*, uint64* outcome) {
    const Piece<T> piece{data, count, first, omit_nan != 0};
    A a[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const uint64 at = uint64(blockIdx.x) * TILE + k * THREADS + threadIdx.x;
        a[k] = A::identity();
        if (at < count) visit<R>(a[k], piece, at);
    }
    const A tile = fold_pairs(a);
    if (threadIdx.x == 0) partials[blockIdx.x] = tile;
    if (threadIdx.x == 0 && gridDim.x == 1) tile.store(outcome);
}

template <class R, class A = typename R::Accumulator>
__global__ void __launch_bounds__(THREADS) pairwise_fold(const A* partials, uint64 count, A* folded, uint64* outcome) {
    A a[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const uint64 at = uint64(blockIdx.x) * TILE + k * THREADS + threadIdx.x;
        a[k] = at < count ? partials[at] : A::identity();
    }
    const A tile = fold_pairs(a);
    if (threadIdx.x == 0) folded[blockIdx.x] = tile;
    if (threadIdx.x == 0 && gridDim.x == 1) tile.store(outcome);
}
