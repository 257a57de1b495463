// Reductions of many values that select, test or count elements, or add integers, or products of two arrays of them, of which `other`
// is the second; include/grouped_folds.cuh says how.
#include "grouped_folds.cuh"

template <class R, int LANES, int KEPT, int THREADS>
__global__ void __launch_bounds__(THREADS, KEPT > 2 ? 1 : 0) fold_spans(const typename ReadBy<R>::X* data, const typename ReadBy<R>::Y* other,
                                                      const int64* offsets, uint64 count, uint64 total, uint64 length, uint64 part,
                                                      uint64 longest, uint32 parts, uint32 omit_nan, uint64* words, typename R::Accumulator* stored) {
    fold_spans_of<R, LANES, KEPT>(ReadBy<R>::of(data, other), Spans{offsets, count, total, length, part, longest, parts}, omit_nan != 0,
                                  Folded<R, KEPT>{words, stored});
}

template <class R, int KEPT, int THREADS>
__global__ void __launch_bounds__(THREADS) fold_columns(const typename ReadBy<R>::X* data, const typename ReadBy<R>::Y* other, uint32 width,
                                                        uint64 height, uint64 rows, uint32 omit_nan, uint64* words, typename R::Accumulator* stored) {
    fold_columns_of<R, KEPT, THREADS>(ReadBy<R>::of(data, other), width, height, rows, omit_nan != 0, Folded<R, KEPT>{words, stored});
}

template <class R, int KEPT, int THREADS>
__global__ void __launch_bounds__(THREADS) merge_parts(const typename R::Accumulator* made, uint64 values, uint64 apart,
                                                       uint64 step, uint64 parts, uint32 groups, uint64* words,
                                                       typename R::Accumulator* stored) {
    merge_parts_of<R, KEPT>(made, values, apart, step, parts, groups, Folded<R, KEPT>{words, stored});
}
