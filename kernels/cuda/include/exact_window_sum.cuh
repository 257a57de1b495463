// The tiles of one thread, where a window holds most of them. A tile of narrow terms costs least, and a tile inside the window
// more. Any other tile moves the window, or has its elements outside the window added slowly.
//
// The lanes of a warp take the cheapest path only together, for otherwise the warp would take both paths; and they look together
// for a window in which all of them can take it.
#pragma once
#include "exact_moments.cuh"
#include "exact_span.cuh"
#include "exact_specials.cuh"

constexpr int PATIENCE = 3;        // tiles with slow elements before a window moves: a flush costs as much as a few of those
constexpr int WIDE_PATIENCE = 16;  // tiles that are not narrow in all lanes before these look for a window where they are,
constexpr int AGAIN_AFTER = 64;    // and as many more if they had one

// Exponents that such a window must have to spare: what is larger than all it holds is added slowly.
template <class T>
constexpr int SPARE = sizeof(T) == 4 ? 5 : sizeof(T) == 8 ? 4 : 3;

template <class T, int TERMS, class Added>
struct WindowSum {
    static constexpr int BYTES = Added::BYTES;
    Specials<TERMS> specials;
    Total total;
    Added terms;
    Gate<T> gate, narrow_gate;
    int left = Added::BUDGET, misses = PATIENCE, wide_tiles = WIDE_PATIENCE;

    __device__ WindowSum(char* memory, const Total& total) : total(total), terms(reinterpret_cast<int64*>(memory)) {}

    // All threads of a warp call this equally often.
    template <int FLIGHT>
    __device__ void operator()(Tile<T, FLIGHT>& tile) {
        bool narrow = false, inside = true, far = false;
        if constexpr (ALWAYS_INSIDE<T>) {
            if (!all_finite(tile)) specials.set_aside(tile);
            specials.look(tile);
        } else {
            Extent<T> extent = extent_of(tile);
            if (!extent.all_finite()) {
                specials.set_aside(tile);
                extent = extent_of(tile);
            }
            specials.look(tile);
            if constexpr (Added::NARROWS)
                narrow = __all_sync(~0u, narrow_gate.admits(extent)) ||
                         (wide_tiles++ >= WIDE_PATIENCE && narrow_down(extent));
            if (!narrow && !gate.admits(extent)) {
                if (extent.all_zero()) return;
                inside = move(extent);
                far = !Added::TWO_SUMS && far_apart<Added>(extent.range());
            }
        }
        static_assert(Tile<T, FLIGHT>::SIZE <= Added::BUDGET);
        if (left < tile.SIZE) {
            terms.flush();
            left = Added::BUDGET;
        }
        left -= tile.SIZE;
        if constexpr (Added::NARROWS)
            if (narrow) return add_narrow(tile);
        if (far) return add_far(tile);
        if (!inside) return add_each(tile);
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) terms.add(widen(tile[at]));
    }

    // Moves the windows of all lanes to where the terms of all their tiles are narrow, if that is possible.
    __device__ bool narrow_down(const Extent<T>& extent) {
        const Extent<T> all = extent.of_warp();
        if (all.all_zero()) return false;
        wide_tiles = 0;
        int top;
        if (!narrow_around<Added>(all.range(), top, SPARE<T>)) return false;
        move_to(top);
        misses = PATIENCE;          // what is larger than all these moves the window at once,
        wide_tiles = -AGAIN_AFTER;  // and not to and fro
        return true;
    }

    // Moves the window to a tile, if it is time to.
    __device__ bool move(const Extent<T>& extent) {
        int top;
        if (misses++ < PATIENCE || !window_around<Added>(extent.range(), top)) return false;
        move_to(top);
        return true;
    }

    __device__ void move_to(int top) {
        terms.flush();
        terms.move(top);
        gate = Gate<T>(Added::range(top));
        if constexpr (Added::NARROWS) narrow_gate = Gate<T>(Added::narrow(top));
        left = Added::BUDGET;
        misses = 0;
    }

    template <int FLIGHT>
    __device__ void add_narrow(const Tile<T, FLIGHT>& tile) {
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            terms.add_narrow(widen(tile[at]));
            if ((at + 1) % TOGETHER == 0 || at + 1 == tile.SIZE) terms.collect();
        }
    }

    template <int FLIGHT>
    __device__ void add_far(const Tile<T, FLIGHT>& tile) {
        terms.reserve(tile.SIZE);
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) terms.add_slowly(widen(tile[at]));
    }

    template <int FLIGHT>
    __device__ void add_each(const Tile<T, FLIGHT>& tile) {
        terms.reserve(tile.SIZE);
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) {
            const Wide<T> x = widen(tile[at]);
            if (gate.admits(key_of(x)))
                terms.add(x);
            else
                terms.add_slowly(x);
        }
    }

    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        terms.flush();
        terms.fold(total);
    }
};
