// The blocking kernel: it holds a stream until the host sets the word `gate`, so that what the host puts on the stream
// meanwhile then runs without a gap. `gate` and `gave_up` are words in the host's memory. After `limit_ns` the kernel
// ends by itself, because a host that waits for the stream would never set the word.
#include "clock.cuh"

extern "C" __global__ void hold(const volatile uint32* gate, volatile uint32* gave_up, uint64 limit_ns) {
    const uint64 start = now_ns();
    while (*gate == 0)
        if (now_ns() - start > limit_ns) {
            *gave_up = 1;
            return;
        }
}
