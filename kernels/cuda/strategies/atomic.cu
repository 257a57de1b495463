// No partials: each block adds its accumulator to a single one in memory by atomic operations, in whatever order the
// blocks finish. Integers and extrema do not mind the order; float sums may differ from run to run.
//
// launch: threads=256 blocks_per_multiprocessor=8
// ops: sums, min, max, norm_inf, tests
// dtypes: *
// error: integers, selections and tests exact; float sums γ_n in the accumulator's precision (float64 for float64 and for squares of bfloat16 and float32, else float32), rounded once to the dtype; not reproducible
#include "block.cuh"
#include "traverse.cuh"

template <int BYTES>
struct Unsigned {
    using Type = uint64;
};
template <>
struct Unsigned<4> {
    using Type = uint32;
};

// Any accumulator of one word: try until nobody came between.
template <class A>
__device__ void merge_atomically(A* target, const A& a) {
    using Word = typename Unsigned<sizeof(A)>::Type;
    static_assert(sizeof(A) == sizeof(Word));
    Word* const word = reinterpret_cast<Word*>(target);
    Word seen = *const_cast<volatile Word*>(word), expected;
    do {
        expected = seen;
        A merged;
        memcpy(&merged, &expected, sizeof(A));
        merged.merge(a);
        Word next;
        memcpy(&next, &merged, sizeof(A));
        seen = atomicCAS(word, expected, next);
    } while (seen != expected);
}

template <class F>
__device__ void merge_atomically(Plain<F>* target, const Plain<F>& a) {
    atomicAdd(&target->total, a.total);
}

// Word by word, each carrying into the next: the words are right once all blocks have added.
template <int WORDS>
__device__ __forceinline__ void add_words(uint64* target, const uint64 (&words)[WORDS]) {
    uint64 carry = 0;
#pragma unroll
    for (int k = 0; k < WORDS; ++k) {
        const uint64 word = words[k] + carry;
        carry = word < carry;
        const uint64 before = atomicAdd(target + k, word);
        carry += before + word < before;
    }
}
__device__ void merge_atomically(Integer128* target, const Integer128& a) {
    add_words<2>(&target->low, {a.low, a.high});
}
__device__ void merge_atomically(Integer192* target, const Integer192& a) {
    add_words<3>(&target->low, {a.low, a.middle, a.high});
}

template <class R, class A = typename R::Accumulator>
__global__ void atomic_begin(A* total) {
    *total = A::identity();
}

template <class R, class A = typename R::Accumulator, class T = typename R::Element>
__global__ void __launch_bounds__(256)
atomic(const T* data, uint64 count, uint64 first, uint32 omit_nan, A* total, uint32* ticket, uint64* outcome) {
    const A a = block_fold(fold_elements<R>({data, count, first, omit_nan != 0}));
    if (threadIdx.x == 0) merge_atomically(total, a);
    if (last_of_grid(ticket, gridDim.x) && threadIdx.x == 0) load_shared_by_grid(total).store(outcome);
}
