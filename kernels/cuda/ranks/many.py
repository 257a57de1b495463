"""Quantiles along axes and by segments on a GPU."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.quantile import Ranks
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.folds import COUNT_NAN, GroupedFolds
from warpfold.kernels.cuda.grouped.layouts import Layout
from warpfold.kernels.cuda.ranks.rows import SHORT, ValueRows, keys_of_rows
from warpfold.kernels.cuda.ranks.whole import values_of
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op


class GroupedQuantiles:
    """The quantiles of the values of a layout of `array`, a CuPy array of one dimension and of `dtype`. With `omit_nan`
    elements that are NaN are left out; otherwise they make their value NaN. To be used while `gpu.active()`."""

    def __init__(self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, op: Op, *, omit_nan: bool) -> None:
        self._gpu, self._dtype, self._op, self._omit_nan = gpu, dtype, op, omit_nan
        self._rows = ValueRows(array, layout)
        self._nans = GroupedFolds(gpu, array, layout, dtype, COUNT_NAN) if dtype.is_float else None
        self._placed: Any = None
        self._ranks: Ranks | None = None

    @property
    def kernel(self) -> str:
        """The name of what the shape chose."""
        return "ranks_of_short_rows" if self._rows.lengths.max(initial=0) <= SHORT else "ranks_of_rows"

    def start(self) -> None:
        """Have the keys in all ranks found. This waits for the numbers of NaNs, on which the ranks depend."""
        if self._nans is not None:
            self._nans.start()
        ranks = self._ranks = Ranks(self._op, self._rows.lengths - self.omitted())
        self._placed = keys_of_rows(self._gpu, self._rows, self._dtype, ranks.sorted, ranks.which)

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
