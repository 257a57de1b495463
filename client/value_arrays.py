"""Values of results as NumPy has them."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.contract.time_view import TimeView
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.lowering.iso8601 import TimeValue
from warpfold.kernels.ops import Value

_NAT = -(1 << 63)


def array_from(
    values: Sequence[Value | None], shape: Sequence[int], dtype: str, unit: str | None = None
) -> NDArray[Any]:
    """Values in C order of `shape` as an array of `dtype`, of which "integer" and those of times stand for int64,
    uint64 or, where neither holds them, Python integers. With a `unit` times that int64 holds are NumPy's. Where a
    value is None, the array is masked."""
    missing = [value is None for value in values]
    present = [0 if value is None else value for value in values]
    if dtype not in DTYPES:  # integers of any size, or those of instants and durations
        held = [row for row in (DTYPES["int64"], DTYPES["uint64"]) if _holds(row.bounds, present)]
        array = np.array(present, held[0].numpy if held else object)
        if unit is not None and array.dtype == np.int64 and _NAT not in present:
            array = array.view(f"{'m' if dtype.startswith('duration') else 'M'}8[{unit}]")
    else:
        row = DTYPES[dtype]  # integers never pass through an array of float64, which would round them
        array = np.array(present, np.float64 if row.is_float else row.numpy).astype(row.numpy)
    array = array.reshape(shape)
    return np.ma.masked_array(array, np.reshape(missing, shape)) if any(missing) else array


def meant_from(
    values: Sequence[Value | None] | None,
    shape: Sequence[int],
    dtype: str,
    decimals: Sequence[str | None] | None,
    times: Sequence[TimeView | TimeValue | None] | None,
) -> NDArray[Any]:
    """Values in C order of `shape` as an array: decimals as Python's, instants and durations as NumPy's, of their unit
    and in UTC where there is a zone, and all others as `array_from` has them. Raises ValueError without values."""
    if values is None:
        raise ValueError("the values are stored in files: Client.array downloads them")
    if decimals is not None:
        return _decimals_from(decimals, shape)
    unit = next((time.unit for time in times or () if time is not None), None)
    return array_from(values, shape, dtype, unit)


def _decimals_from(words: Sequence[str | None], shape: Sequence[int]) -> NDArray[Any]:
    missing = [word is None for word in words]
    array = np.empty(len(words), object)
    array[:] = [Decimal(word or 0) for word in words]
    array = array.reshape(shape)
    return np.ma.masked_array(array, np.reshape(missing, shape)) if any(missing) else array


def _holds(bounds: tuple[int, int], values: Sequence[Value]) -> bool:
    return all(bounds[0] <= value <= bounds[1] for value in values)
