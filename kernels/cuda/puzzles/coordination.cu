// Blocks of one cluster that coordinate without waiting longer than they must: each scales its elements by its number
// into shared memory and says that it has arrived; its first thread adds them up in order while the others of the
// cluster come; then all wait for each other. Between arrive and wait there is work, which one barrier would not allow.
#include "cluster.cuh"

template <int BLOCKS>
__global__ void __cluster_dims__(BLOCKS, 1, 1) coordination(const float* data, uint32 size, float* sums) {
    extern __shared__ float shared[];
    const uint32 at = blockIdx.x * blockDim.x + threadIdx.x;
    const float scale = float(blockIdx.x + 1);
    shared[threadIdx.x] = at < size ? data[at] * scale : 0.0f;
    __syncthreads();

    cluster_arrive();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (uint32 k = 0; k < blockDim.x; ++k) sum += shared[k];
        sums[blockIdx.x] = sum;
    }
    __syncwarp();
    cluster_wait();
}
