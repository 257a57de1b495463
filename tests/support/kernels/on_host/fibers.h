// One warp on the host: 32 fibers that take turns. Each runs until it waits for the others or ends, so what a device does
// between two barriers happens here in the order of the lanes.
#pragma once
#include <ucontext.h>
#include <functional>

constexpr int LANES = 32, STACK = 1 << 16;

namespace {  // else the loader gives all libraries of a process one warp, but each its own threadIdx

// A fiber is begun once and runs a body after another: to begin one asks the kernel for the signals, as swapcontext would at
// every turn. Turns are taken by the compiler's own setjmp, which keeps no more than a stack and a place.
class Warp {
public:
    static void run(const std::function<void()>& work) {
        body = &work;
        blockDim.x = LANES;
        int running = LANES;
        for (State& state : states) state = state == ENDED ? BEGUN : NEW;
        while (running)
            for (unsigned lane = 0; lane < LANES; ++lane) {
                if (states[lane] == ENDED) continue;
                threadIdx.x = lane;
                take_turn(lane);
                running -= states[lane] == ENDED;
            }
        threadIdx.x = 0;
        blockDim.x = 1;
    }
    // A function of its own, since its caller's registers are lost while others have their turns.
    __attribute__((noipa)) static void wait() {
        if (!__builtin_setjmp(places[threadIdx.x])) go_home();
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
    using Place = void*[5];
    static void start() {
        for (;; wait()) {
            (*body)();
            states[threadIdx.x] = ENDED;
        }
    }
    __attribute__((noipa)) static void take_turn(unsigned lane) {
        if (__builtin_setjmp(home)) return;
        if (states[lane] == BEGUN) go_on(lane);
        begin(lane);
    }
    // No function may have both ends of a jump.
    [[noreturn]] __attribute__((noipa)) static void go_home() { __builtin_longjmp(home, 1); }
    [[noreturn]] __attribute__((noipa)) static void go_on(unsigned lane) { __builtin_longjmp(places[lane], 1); }
    __attribute__((noipa)) static void begin(unsigned lane) {
        static ucontext_t beginning;
        states[lane] = BEGUN;
        getcontext(&beginning);
        beginning.uc_stack.ss_sp = stacks[lane];
        beginning.uc_stack.ss_size = STACK;
        makecontext(&beginning, &Warp::start, 0);
        setcontext(&beginning);
    }
    alignas(64) static inline char stacks[LANES][STACK];
    static inline const std::function<void()>* body;
    static inline Place home, places[LANES];
    static inline State states[LANES];
};

}  // namespace

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
