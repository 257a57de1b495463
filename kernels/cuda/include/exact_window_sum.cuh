// What one thread does with its tiles where a window holds most of them: a tile outside moves the window there, or is
// added slowly, element by element.
#pragma once
#include "exact_span.cuh"
#include "exact_specials.cuh"
#include "exact_terms.cuh"

constexpr int PATIENCE = 3;  // slow tiles before a window moves: a flush costs about as much as one

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
                if (!move(span)) return add_slowly(tile);
            }
        }
        if (left < tile.SIZE) {
            terms.flush();
            left = Added::BUDGET;
        }
        left -= tile.SIZE;
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) terms.add(widen(tile[at]));
    }

    __device__ bool move(const Span<T>& span) {
        if (misses++ < PATIENCE) return false;
        const Gate<T> there(Added::range(span.highest()));
        if (!there.admits(span)) return false;
        terms.flush();
        terms.move(span.highest());
        gate = there;
        left = Added::BUDGET;
        misses = 0;
        return true;
    }

    template <int FLIGHT>
    __device__ void add_slowly(const Tile<T, FLIGHT>& tile) {
        terms.reserve(tile.SIZE);
#pragma unroll
        for (int at = 0; at < tile.SIZE; ++at) terms.add_slowly(widen(tile[at]));
    }

    __device__ void finish() {
        total.note(specials.flags, specials.nans);
        terms.flush();
        terms.fold(total);
    }
};
