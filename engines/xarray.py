"""Exact reductions of xarray: `import warpfold.xarray` gives every DataArray the accessor `exact`.

`temperature.exact.mean("time")` works for arrays in memory and for arrays of Dask chunks, with the same bits.
"""

from collections.abc import Collection, Hashable
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr

from warpfold.engines import dask as of_dask

Dims = str | Collection[Hashable] | None


@xr.register_dataarray_accessor("exact")
class ExactAccessor:
    """Sums of a DataArray along dimensions, each value rounded once. A NaN is not skipped: it makes its value NaN.

    `dim` is a dimension or several; None reduces all of them. Attributes are kept as xarray's own reductions keep them.
    """

    def __init__(self, array: "xr.DataArray") -> None:
        self._array = array

    def sum(self, dim: Dims = None) -> "xr.DataArray":
        """Σ x, correctly rounded."""
        return self._reduced("sum", dim)

    def mean(self, dim: Dims = None) -> "xr.DataArray":
        """Σ x / n, rounded once."""
        return self._reduced("mean", dim)

    def var(self, dim: Dims = None, *, ddof: int = 0) -> "xr.DataArray":
        """Σ (x − mean)² / (n − ddof), rounded once."""
        return self._reduced("var", dim, ddof=ddof)

    def std(self, dim: Dims = None, *, ddof: int = 0) -> "xr.DataArray":
        """The root of `var`, rounded once."""
        return self._reduced("std", dim, ddof=ddof)

    def _reduced(self, op: str, dim: Dims, **options: int) -> "xr.DataArray":
        call = getattr(of_dask, op)

        def reduced(data: Any, axis: int | tuple[int, ...] | None = None) -> Any:
            if isinstance(data, da.Array):
                return call(data, axis, **options)
            if type(data) is not np.ndarray:  # the array may have units, a mask or a GPU, which NumPy would drop
                raise TypeError(f"give an array of NumPy or Dask, not a {type(data).__module__}.{type(data).__name__}")
            whole = da.from_array(data, chunks=data.shape, name=False)
            return call(whole, axis, **options).compute(scheduler="synchronous")

        return self._array.reduce(reduced, dim)
