// One warp on the host: 32 fibers that take turns. Each runs until it waits for the others or ends, so what a device does
// between two barriers happens here in the order of the lanes.
#pragma once
#include <ucontext.h>
#include <functional>
#include <vector>

constexpr int LANES = 32, STACK = 1 << 16;

class Warp {
public:
    void run(const std::function<void()>& body) {
        this->body = &body;
        current = this;
        blockDim.x = LANES;
        for (int lane = 0; lane < LANES; ++lane) {
            stacks[lane].resize(STACK);
            getcontext(&fibers[lane]);
            fibers[lane].uc_stack.ss_sp = stacks[lane].data();
            fibers[lane].uc_stack.ss_size = stacks[lane].size();
            fibers[lane].uc_link = &home;
            makecontext(&fibers[lane], &Warp::start, 0);
            alive[lane] = true;
        }
        for (bool any = true; any;) {
            any = false;
            for (unsigned lane = 0; lane < LANES; ++lane) {
                if (!alive[lane]) continue;
                any = true;
                threadIdx.x = lane;
                swapcontext(&home, &fibers[lane]);
            }
        }
        threadIdx.x = 0;
        blockDim.x = 1;
    }
    static void wait() { swapcontext(&current->fibers[threadIdx.x], &current->home); }
    template <class T>
    static T exchange(T mine, int lane) {  // what that lane brought
        static T slots[LANES];
        slots[threadIdx.x] = mine;
        wait();
        const T theirs = slots[lane % LANES];
        wait();
        return theirs;
    }
    static bool all(bool mine) {
        static bool votes[LANES];
        votes[threadIdx.x] = mine;
        wait();
        bool all = true;
        for (bool vote : votes) all &= vote;
        wait();
        return all;
    }

private:
    static void start() {
        (*current->body)();
        current->alive[threadIdx.x] = false;
    }
    static inline Warp* current = nullptr;
    const std::function<void()>* body = nullptr;
    ucontext_t home, fibers[LANES];
    std::vector<char> stacks[LANES];
    bool alive[LANES];
};

static void __syncwarp() { Warp::wait(); }
static void __syncthreads() { Warp::wait(); }
static int __syncthreads_or(int x) {
    int any = 0;
    for (int lane = 0; lane < LANES; ++lane) any |= Warp::exchange(x, lane);
    return any;
}
template <class T>
static T __shfl_down_sync(unsigned, T x, int distance) {
    return Warp::exchange(x, threadIdx.x + distance);
}
template <class T>
static T __shfl_xor_sync(unsigned, T x, int distance) {
    return Warp::exchange(x, threadIdx.x ^ distance);
}
static bool __all_sync(unsigned, bool x) { return Warp::all(x); }
static unsigned long long atomicAdd(unsigned long long* at, unsigned long long x) { return *at += x, *at - x; }
static unsigned long long atomicOr(unsigned long long* at, unsigned long long x) { return *at |= x; }
