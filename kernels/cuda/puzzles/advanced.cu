// Three levels in one kernel. Warp: one elected lane adds 32 elements in order. Block: the first thread adds the warps'
// sums in order. Cluster: blocks say that they have arrived before that last step, and wait for each other after it.
#include "cluster.cuh"

template <int BLOCKS>
__global__ void __cluster_dims__(BLOCKS, 1, 1) advanced(const float* data, uint32 size, float* sums) {
    extern __shared__ float shared[];
    const uint32 at = blockIdx.x * blockDim.x + threadIdx.x;
    const float scale = float(blockIdx.x + 1);
    shared[threadIdx.x] = at < size ? data[at] * scale : 0.0f;
    __syncthreads();

    if (elected()) {
        const uint32 first = threadIdx.x / 32 * 32;
        float sum = 0.0f;
        for (uint32 k = 0; k < 32; ++k) sum += shared[first + k];
        shared[first] = sum;
    }
    __syncthreads();

    cluster_arrive();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (uint32 k = 0; k < blockDim.x; k += 32) sum += shared[k];
        sums[blockIdx.x] = sum;
    }
    __syncwarp();
    cluster_wait();
}
