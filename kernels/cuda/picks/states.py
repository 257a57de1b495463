"""Ops on a GPU that rank elements, pick or count them. The GPU finds the elements between which quantiles lie, and
makes the states that other aggregates have on a CPU; the host finishes them as it does there."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import State
from warpfold.kernels.aggregates.by_name import aggregate_of
from warpfold.kernels.aggregates.collected import Distinct, MostFrequent
from warpfold.kernels.aggregates.extreme import Span
from warpfold.kernels.aggregates.histogram import Histogram
from warpfold.kernels.aggregates.picked import Picked
from warpfold.kernels.aggregates.quantile import Ranks
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.folds import COUNT_NAN, GroupedFolds
from warpfold.kernels.cuda.grouped.layouts import Layout
from warpfold.kernels.cuda.grouped.selecting import GroupedOp
from warpfold.kernels.cuda.picks.counted import BinsOnGpu, RunsOnGpu
from warpfold.kernels.cuda.picks.picked import PicksOnGpu
from warpfold.kernels.cuda.ranks.kernels import values_of
from warpfold.kernels.cuda.ranks.rows import SHORT, ValueRows, keys_of_rows
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import OPS, Op
from warpfold.kernels.parts.grouping import Index


class GroupedStates:
    """The values of a layout of `array`, a CuPy array of one dimension and of `dtype`. With `omit_nan` elements that
    are NaN are left out. With `first`, the index of the first element, the array is a part of one value, and its state
    has all that merging needs. To be used while `gpu.active()`."""

    def __init__(
        self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, op: Op, *, omit_nan: bool, first: int | None = None
    ) -> None:  # fmt: skip
        self._gpu, self._array, self._layout, self._dtype, self._op = gpu, array, layout, dtype, op
        self._omit_nan, self._first = omit_nan and dtype.is_float, first
        self._aggregate: Any = aggregate_of(op, dtype, omit=omit_nan)
        counted = self._omit_nan or (dtype.is_float and (op.extreme is not None or op.fold == "mode"))
        self._nans = GroupedFolds(gpu, array, layout, dtype, COUNT_NAN) if counted else None
        self._lengths = layout.lengths
        self._made: _Made | None = None

    @property
    def kernel(self) -> str:
        """The name of what the op chose."""
        return self._op.fold

    def start(self) -> None:
        """Have the states made. What is picked waits for the numbers of NaNs."""
        if self._nans is not None:
            self._nans.start()
        self._made = self._started()
        if self._made is not None:
            self._made.start()

    def _started(self) -> "_Made | None":
        gpu, dtype, op = self._gpu, self._dtype, self._op
        match self._aggregate:
            case Span():
                return _Ends(gpu, self._array, self._layout, dtype, self._aggregate, self._lengths, self._omit_nan)
            case Histogram():
                return BinsOnGpu(gpu, ValueRows(self._array, self._layout), dtype, self._aggregate)
            case Picked():
                rows, nans = ValueRows(self._array, self._layout), self._nan_counts()
                return PicksOnGpu(
                    gpu, rows, dtype, op, self._aggregate, nans, omit_nan=self._omit_nan, first=self._first
                )
            case Distinct() | MostFrequent():
                rows, nans = ValueRows(self._array, self._layout), self._nan_counts()
                return RunsOnGpu(gpu, rows, dtype, op, nans, omit_nan=self._omit_nan)
        return None  # how many elements there are says all

    def omitted(self) -> Index:
        """How many elements are left out of each value; waits for the work."""
        return self._nan_counts() if self._omit_nan else np.zeros(1, np.int64)

    def state(self) -> State:
        """The states of all values; waits for the work."""
        assert not isinstance(self._made, RunsOnGpu), "values whose elements are sorted come from no states"
        return (self._lengths - self.omitted(),) if self._made is None else self._made.state()

    def values(self) -> NDArray[Any]:
        """The values, of several elements or bins side by side; arbitrary where there are too few elements."""
        if isinstance(self._made, RunsOnGpu):
            return self._made.values()
        values: NDArray[Any] = self._aggregate.finish(self.state(), self._lengths - self.omitted())
        return values

    def _nan_counts(self) -> Index:
        if self._nans is None:
            return np.zeros_like(self._lengths)
        return self._nans.words()[:, 0].astype(np.int64)


class _Ends:
    """The least and the largest element of each value."""

    def __init__(  # noqa: PLR0917
        self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, span: Span, lengths: Index, omit_nan: bool
    ) -> None:  # fmt: skip
        self._span, self._dtype, self._lengths = span, dtype, lengths
        self._ends = [GroupedOp(gpu, array, layout, dtype, OPS[name], omit_nan=omit_nan) for name in ("min", "max")]

    def start(self) -> None:
        """Have the elements found."""
        for end in self._ends:
            end.start()

    def state(self) -> State:
        """The keys of both."""
        counts = self._lengths - self._ends[0].omitted()
        word = np.dtype(np.float64) if self._dtype.is_float else self._dtype.numpy
        least, most = (
            np.array([value if count else 0 for value, count in zip(end.values(counts), counts, strict=True)], word)
            for end in self._ends
        )
        return self._span.of_values(least, most, counts)


_Made = _Ends | BinsOnGpu | PicksOnGpu | RunsOnGpu


class GroupedQuantiles:
    """The quantiles of the values of a layout of `array`, a CuPy array of one dimension and of `dtype`. With `omit_nan`
    elements that are NaN are left out; otherwise they make their value NaN. To be used while `gpu.active()`."""

    def __init__(self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, op: Op, *, omit_nan: bool) -> None:
        self._gpu, self._dtype, self._op, self._omit_nan = gpu, dtype, op, omit_nan
        self._array, self._layout = array, layout
        self._nans = GroupedFolds(gpu, array, layout, dtype, COUNT_NAN) if dtype.is_float else None
        self._placed: Any = None
        self._ranks: Ranks | None = None

    @property
    def kernel(self) -> str:
        """The name of what the shape chose."""
        return "ranks_of_short_rows" if self._layout.lengths.max(initial=0) <= SHORT else "ranks_of_rows"

    def start(self) -> None:
        """Have the keys in all ranks found. This waits for the numbers of NaNs, on which the ranks depend."""
        if self._nans is not None:
            self._nans.start()
        rows = ValueRows(self._array, self._layout)
        ranks = self._ranks = Ranks(self._op, rows.lengths - self.omitted())
        self._placed = keys_of_rows(self._gpu, rows, self._dtype, ranks.sorted, ranks.which)

    def omitted(self) -> NDArray[np.int64]:
        """How many elements are left out of each value; waits for the work."""
        if self._nans is None or not self._omit_nan:
            return np.zeros(1, np.int64)
        return self._nan_counts()

    def values(self) -> NDArray[Any]:
        """The values, of several quantiles side by side; arbitrary where no element entered."""
        assert self._ranks is not None, "start comes first"
        nans = None if self._nans is None or self._omit_nan else self._nan_counts() > 0
        return values_of(self._placed.get(), self._ranks, nans, self._op, self._dtype)

    def _nan_counts(self) -> NDArray[np.int64]:
        assert self._nans is not None, "only floats have NaNs"
        return self._nans.words()[:, 0].astype(np.int64)
