// An all-reduce of up to WORDS numbers of 64 bits over the GPUs of one machine: one launch of one block on each GPU.
//
// Every GPU has a mailbox in its own memory, which all others can write to. A block writes its numbers into the mailboxes of
// all others, waits for theirs in its own, and adds them up in the order of ranks, so that all ranks get the same bits.
// Every 32 bits of a number travel with the epoch, the number of this all-reduce, in one store of 64 bits, which is never
// torn: a block that sees the epoch has the bits, without a fence (as in the LL protocol of NCCL).
//
// A mailbox has two halves, which epochs use by turns. A rank writes to a half again only after its next epoch, for which it
// had to receive every number of every other rank; those come from launches that began after the half was read. So nothing
// has to be cleared.
//
// A block waits for others, but no other block of its GPU waits for it, and each rank has a GPU of its own. A rank that does
// not come within `limit_ns` is named in `late`, a word in the host's memory, and the block ends; all later ones on its
// stream end at once, and name nobody: who is not there yet may only have waited longer.
#include "clock.cuh"

constexpr int WORDS = 96, RANKS = 32, GROUPS = 8;

enum : uint32 { EPOCH, GIVEN_UP, HEAD = 16 };  // the first words of a mailbox, a cache line for all

struct Mailboxes {
    uint64* of[RANKS];
};

__device__ inline uint64 bits_of(uint64 number) { return number; }
__device__ inline uint64 bits_of(float64 number) { return uint64(__double_as_longlong(number)); }
template <class T>
__device__ inline T number_of(uint64 bits);
template <>
__device__ inline uint64 number_of<uint64>(uint64 bits) {
    return bits;
}
template <>
__device__ inline float64 number_of<float64>(uint64 bits) {
    return __longlong_as_double(int64(bits));
}

// Where rank `from` puts its number `place` of an epoch, in two words.
__device__ inline uint64* slot(uint64* mailbox, uint32 epoch, uint32 from, uint32 place) {
    return mailbox + HEAD + 2 * ((epoch % 2 * RANKS + from) * WORDS + place);
}

__device__ inline void put(uint64* at, uint64 bits, uint32 epoch) {
    const uint64 stamp = uint64(epoch) << 32;
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(stamp | uint32(bits)), "l"(stamp | bits >> 32)
                 : "memory");
}

// Waits for the number of this epoch, and returns whether it came.
__device__ inline bool take(const uint64* at, uint32 epoch, uint64 limit_ns, uint64& bits) {
    uint64 start = 0;
    for (uint32 looks = 1;; ++looks) {
        uint64 low, high;
        asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(at) : "memory");
        if (low >> 32 == epoch && high >> 32 == epoch) {
            bits = high << 32 | uint32(low);
            return true;
        }
        if (looks % 256 == 0) {  // most numbers come before the first look at the clock
            const uint64 now = now_ns();
            if (start == 0) start = now;
            if (now - start >= limit_ns) return false;
        }
    }
}

// One block of WORDS threads for each of up to GROUPS ranks. `sent` and `received` may be the same memory.
template <class T>
__global__ void __launch_bounds__(WORDS * GROUPS)
    all_reduce(const T* sent, T* received, uint32 count, const __grid_constant__ Mailboxes mailboxes, uint32 rank, uint32 ranks,
               uint64 limit_ns, volatile uint32* late) {
    __shared__ T numbers[RANKS][WORDS];
    const uint32 place = threadIdx.x % WORDS, group = threadIdx.x / WORDS, groups = blockDim.x / WORDS;
    uint64* const own = mailboxes.of[rank];
    const uint32 epoch = uint32(own[EPOCH]) + 1;
    bool missed = own[GIVEN_UP] != 0;
    if (place < count) {
        const T number = sent[place];
        for (uint32 peer = group; peer < ranks; peer += groups)
            if (peer != rank) put(slot(mailboxes.of[peer], epoch, rank, place), bits_of(number), epoch);
        for (uint32 peer = group; peer < ranks; peer += groups) {
            uint64 bits = bits_of(number);
            if (peer != rank && !take(slot(own, epoch, peer, place), epoch, missed ? 0 : limit_ns, bits)) {
                if (!missed) *late = peer + 1;
                missed = true;
            }
            numbers[peer][place] = number_of<T>(bits);
        }
    }
    missed = __syncthreads_or(missed);
    if (group == 0 && place < count) {
        T sum = numbers[0][place];
        for (uint32 peer = 1; peer < ranks; ++peer) sum += numbers[peer][place];
        received[place] = sum;
    }
    if (threadIdx.x == 0) {
        own[EPOCH] = epoch;
        if (missed) own[GIVEN_UP] = 1;
    }
}
