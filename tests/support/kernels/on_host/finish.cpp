// Values of totals behind a C function, which says whether a block finishes them alike.
#include "cuda.h"
#include "fibers.h"
#include <vector>
// then the device code
#include "exact_block_finish.cuh"

template <class Out, bool BOTH, bool PRODUCTS, bool SIGNED>
bool run(const int64* limbs, uint64 finish, uint64 count, uint64 ddof, void* out) {
    constexpr int LIMBS = BOTH ? 78 + 144 : PRODUCTS ? 144 : 78;
    constexpr int ROOM = (FinishRoom::bytes(LIMBS, BOTH, PRODUCTS) - 8 * LIMBS) / 4;
    std::vector<uint32> room(ROOM + 2, 0x5EED5EEDu);
    Ends ends[2] = {{LIMBS, -1}, {LIMBS, -1}};
    for (int k = 0; k < LIMBS; ++k) {
        const bool second = BOTH && k >= 78;
        const int place = k - 6 - (second ? 78 : 0);
        if (place < 0 || limbs[k] == 0) continue;
        if (place < ends[second].low) ends[second].low = place;
        if (place > ends[second].high) ends[second].high = place;
    }
    finish_total<Out, BOTH, PRODUCTS, SIGNED>(*static_cast<Out*>(out), limbs, ends, finish, count, ddof, room.data() + 1);
    if (room.front() != 0x5EED5EEDu || room.back() != 0x5EED5EEDu) abort();
    if constexpr (BOTH) {
        static Warp warp;
        BlockFinishRoom block;
        Out by_block;
        warp.run([&] { finish_by_block(&by_block, limbs, ends, finish, count, ddof, block); });
        return !memcmp(&by_block, out, sizeof(Out));
    }
    return true;
}

template <class Out>
bool run(const char* kind, const int64* limbs, uint64 finish, uint64 count, uint64 ddof, void* out) {
    if (!strcmp(kind, "VALUES")) return run<Out, false, false, true>(limbs, finish, count, ddof, out);
    if (!strcmp(kind, "MAGNITUDES")) return run<Out, false, false, false>(limbs, finish, count, ddof, out);
    if (!strcmp(kind, "SQUARES")) return run<Out, false, true, false>(limbs, finish, count, ddof, out);
    if (!strcmp(kind, "PRODUCTS")) return run<Out, false, true, true>(limbs, finish, count, ddof, out);
    if (!strcmp(kind, "MOMENTS")) return run<Out, true, false, false>(limbs, finish, count, ddof, out);
    return false;
}

extern "C" bool finish_by_name(const char* dtype, const char* kind, const int64* limbs, uint64 finish, uint64 count,
                               uint64 ddof, void* out) {
    if (!strcmp(dtype, "float16")) return run<float16>(kind, limbs, finish, count, ddof, out);
    if (!strcmp(dtype, "bfloat16")) return run<bfloat16>(kind, limbs, finish, count, ddof, out);
    if (!strcmp(dtype, "float32")) return run<float32>(kind, limbs, finish, count, ddof, out);
    if (!strcmp(dtype, "float64")) return run<float64>(kind, limbs, finish, count, ddof, out);
    return false;
}
