// What one thread does with its tiles where a window holds most of them: a tile that is not inside moves the window there,
// or those of its elements that are not are added slowly.
#pragma once
#include "exact_span.cuh"
#include "exact_specials.cuh"
#include "exact_terms.cuh"

constexpr int PATIENCE = 3;  // tiles with slow elements before a window moves: a flush costs as much as a few of those

template <class T, int TERMS, class Added>
struct WindowSum {
    static constexpr int BYTES = Added::BYTES;
    Specials<TERMS> specials;
    Total total;
    Added terms;
    Gate<T> gate;
    int left = Added::BUDGET, misses = PATIENCE;

    __device__ WindowSum(char* memory, const Total& total) : total(total), terms(reinterpret_cast<int64*>(memory)) {}

    template <int FLIGHT>
    __device__ void operator()(Tile<T, FLIGHT>& tile) {
        bool inside = true;
        if constexpr (ALWAYS_INSIDE<T>) {
            if (!all_finite(tile)) specials.set_aside(tile);
            specials.look(tile);
        } else {
            Span<T> span(tile);
            if (!span.all_finite()) {
                specials.set_aside(tile);
                span = Span<T>(tile);
            }
            specials.look(tile);
            if (!gate.admits(span)) {
                if (span.all_zero()) return;
                inside = move(span);
            }
        }
        if (left < tile.SIZE) {
            terms.flush();
            left = Added::BUDGET;
        }
        left -= tile.SIZE;
        if (!inside) return add_each(tile);
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) terms.add(widen(tile[at]));
    }

    __device__ bool move(const Span<T>& span) {
        if (misses++ < PATIENCE) return false;
        Range window;
        int top;
        if (!window_around<Added>(span.range(), top, window)) return false;
        terms.flush();
        terms.move(top);
        gate = Gate<T>(window);
        left = Added::BUDGET;
        misses = 0;
        return true;
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
