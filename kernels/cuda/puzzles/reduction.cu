// A sum over a whole cluster: in each block a tree in shared memory, its stride halving from half the threads to one;
// the blocks' sums go to memory; the cluster synchronises; one elected thread of the first block adds them in order.
#include "cluster.cuh"

template <int BLOCKS>
__global__ void __cluster_dims__(BLOCKS, 1, 1) reduction(const float* data, uint32 size, float* partials, float* sum) {
    extern __shared__ float shared[];
    const uint32 at = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x] = at < size ? data[at] : 0.0f;
    __syncthreads();
    for (uint32 stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) shared[threadIdx.x] += shared[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) partials[blockIdx.x] = shared[0];
    __syncwarp();

    cluster_sync();
    if (cluster_rank() == 0 && threadIdx.x < 32 && elected()) {
        float total = 0.0f;
        for (int rank = 0; rank < BLOCKS; ++rank) total += __ldcg(partials + rank);
        *sum = total;
    }
}
