// Clusters of eight blocks that see each other's shared memory (Hopper and newer): each block leaves its accumulator
// in its own shared memory, the cluster synchronises, and one elected thread of the first block reads the other seven
// through distributed shared memory. One partial a cluster is left; the last cluster folds those.
//
// launch: threads=256 blocks_per_multiprocessor=4 flight=4 cluster=8
// needs: sm_90
// ops: sums, selections, tests
// dtypes: *
// ops: prod
// dtypes: float, bool
// error: integers, selections and tests exact; float sums and products γ_n in the accumulator's precision (float64 for float64 and for squares of bfloat16 and float32, else float32), rounded once to the dtype
#include "block.cuh"
#include "cluster.cuh"
#include "traverse.cuh"

constexpr int CLUSTER = 8;

template <class R, class A = typename R::Accumulator, class T = typename R::Element>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(256, 4)
cluster(const T* data, uint64 count, uint64 first, uint32 omit_nan, A* partials, uint32* ticket, uint64* outcome) {
    __shared__ alignas(16) unsigned char memory[sizeof(A)];
    A* const mine = reinterpret_cast<A*>(memory);
    A a = block_fold(fold_vectors<R, 4>({data, count, first, omit_nan != 0}));
    if (threadIdx.x == 0) *mine = a;
    cluster_sync();
    const uint32 clusters = gridDim.x / CLUSTER;
    if (cluster_rank() == 0 && threadIdx.x < 32 && elected()) {
        A whole = *mine;
        for (int rank = 1; rank < CLUSTER; ++rank) whole.merge(load_from_rank(mine, rank));
        partials[blockIdx.x / CLUSTER] = whole;
    }
    cluster_sync();  // no block may leave while its shared memory is read
    if (cluster_rank() > 0) return;
    if (!last_of_grid(ticket, clusters)) return;
    a = fold_partials(partials, clusters);
    if (threadIdx.x == 0) a.store(outcome);
}
