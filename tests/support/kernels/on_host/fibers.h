// One warp on the host: 32 fibers that take turns. Each runs until it waits for the others or ends, so what a device does
// between two barriers happens here in the order of the lanes.
#pragma once
#include <setjmp.h>
#include <ucontext.h>
#include <functional>

constexpr int LANES = 32, STACK = 1 << 16;

// A fiber begins by setcontext and takes turns by _setjmp and _longjmp: swapcontext asks the kernel for the signals at
// every turn, which took nine tenths of these tests' time.
class Warp {
public:
    void run(const std::function<void()>& body) {
        this->body = &body;
        current = this;
        blockDim.x = LANES;
        for (int lane = 0; lane < LANES; ++lane) {
            getcontext(&beginnings[lane]);
            beginnings[lane].uc_stack.ss_sp = stacks[lane];
            beginnings[lane].uc_stack.ss_size = STACK;
            makecontext(&beginnings[lane], &Warp::start, 0);
            states[lane] = NEW;
        }
        for (bool any = true; any;) {
            any = false;
            for (unsigned lane = 0; lane < LANES; ++lane) {
                if (states[lane] == ENDED) continue;
                any = true;
                threadIdx.x = lane;
                take_turn(lane);
            }
        }
        threadIdx.x = 0;
        blockDim.x = 1;
    }
    static void wait() {
        if (!_setjmp(current->waits[threadIdx.x])) _longjmp(current->home, 1);
    }
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
    static unsigned ballot(bool mine) {
        static unsigned votes;
        if (threadIdx.x == 0) votes = 0;  // the lanes take turns in their order
        votes |= unsigned(mine) << threadIdx.x;
        wait();
        const unsigned all = votes;
        wait();
        return all;
    }

private:
    enum State : char { NEW, BEGUN, ENDED };
    static void start() {
        (*current->body)();
        current->states[threadIdx.x] = ENDED;
        _longjmp(current->home, 1);
    }
    // A function of its own, so that no variable of `run` changes between _setjmp and _longjmp.
    __attribute__((noinline)) void take_turn(unsigned lane) {
        if (_setjmp(home)) return;
        if (states[lane] == BEGUN) _longjmp(waits[lane], 1);
        states[lane] = BEGUN;
        setcontext(&beginnings[lane]);
    }
    static inline Warp* current = nullptr;
    alignas(64) static inline char stacks[LANES][STACK];
    const std::function<void()>* body = nullptr;
    ucontext_t beginnings[LANES];
    jmp_buf home, waits[LANES];
    State states[LANES];
};

static void __syncwarp() { Warp::wait(); }
static void __syncthreads() { Warp::wait(); }
static int __syncthreads_or(int x) { return !Warp::all(!x); }
template <class T>
static T __shfl_down_sync(unsigned, T x, int distance) {
    return Warp::exchange(x, threadIdx.x + distance);
}
template <class T>
static T __shfl_up_sync(unsigned, T x, int distance) {
    return Warp::exchange(x, threadIdx.x - distance);
}
template <class T>
static T __shfl_xor_sync(unsigned, T x, int distance) {
    return Warp::exchange(x, threadIdx.x ^ distance);
}
template <class T>
static T __shfl_sync(unsigned, T x, int lane) {
    return Warp::exchange(x, lane);
}
static unsigned __ballot_sync(unsigned, bool x) { return Warp::ballot(x); }
static bool __all_sync(unsigned, bool x) { return Warp::all(x); }
static unsigned long long atomicAdd(unsigned long long* at, unsigned long long x) { return *at += x, *at - x; }
static unsigned long long atomicOr(unsigned long long* at, unsigned long long x) { return *at |= x; }
static unsigned atomicAdd(unsigned* at, unsigned x) { return *at += x, *at - x; }
static int atomicMax(int* at, int x) {
    const int before = *at;
    if (x > before) *at = x;
    return before;
}
static unsigned atomicOr(unsigned* at, unsigned x) { return *at |= x; }
template <class T>
static void atomicMin(T* at, T x) { *at = x < *at ? x : *at; }
static void atomicMax(unsigned long long* at, unsigned long long x) { *at = x > *at ? x : *at; }
