"""Arrays and columns of times, decimals and complex numbers: a request cannot carry them, and a file can.

They go up as the file that they would be saved as, so a reduction of them is that of this file, and NaT is a null.
"""

from decimal import Decimal
from typing import Any

import numpy as np

from warpfold.client.array_files import ArrayAsFile, ColumnAsFile
from warpfold.client.arrays import offered, unmasked
from warpfold.client.columns import columns_of
from warpfold.kernels.dtypes import part_dtype
from warpfold.kernels.lowering.iso8601 import UNITS
from warpfold.kernels.lowering.times import times_of_dtype
from warpfold.kernels.machine.extras import install

_TIMES = ("datetime", "timedelta", "timestamp", "duration", "date")
_COMPLEX = ("complex", "torch.complex")
_DECIMALS = "decimal"


def as_file(data: Any, dtype: str | None = None) -> Any:
    """`data` as what goes up as a file, if it is an array, a column or a frame of one column of times, decimals or
    complex numbers; else `data` itself. With a `dtype` decimals are rounded to numbers elsewhere.

    Raises TypeError that names the dtype for times and complex numbers that no file keeps, or that would be converted,
    and ImportError for a column where pyarrow is not installed.
    """
    columns = columns_of(data)
    if columns is not None:
        if len(columns) != 1:
            return data
        ((_, data),) = columns
    kind = _kind_of(data)
    if kind.startswith(_DECIMALS):
        return data if dtype is not None else ColumnAsFile(_table_of(data, kind))
    if not kind.startswith((*_TIMES, *_COMPLEX)):
        return data
    if dtype is not None:
        raise TypeError(f"{kind} is not converted to {dtype}: leave dtype out, or convert the elements first")
    if hasattr(data, "to_numpy") and not isinstance(getattr(data, "dtype", None), np.dtype):
        return ColumnAsFile(_table_of(data, kind))
    array = unmasked(offered(data))
    if part_dtype(array.dtype) is None and times_of_dtype(array.dtype) is None:
        raise TypeError(
            f"a {type(data).__name__} of {array.dtype} cannot be reduced: times have one of the units "
            f"{', '.join(UNITS)}, and complex numbers are complex64 or complex128"
        )
    return ArrayAsFile(array)


def _kind_of(data: Any) -> str:
    """The dtype of an array or a column in small letters, as its library writes it; empty of anything else."""
    dtype = getattr(data, "dtype", None) or getattr(data, "type", "")
    kind = str(dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else dtype).lower()
    if kind == "object" and hasattr(data, "dropna") and isinstance(next(iter(data.dropna()), None), Decimal):
        return _DECIMALS  # in pandas
    return kind


def _table_of(column: Any, kind: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(f"a column of {kind} needs pyarrow: {install('frames')}") from error
    name = str(getattr(column, "name", None) or "values")
    try:
        if hasattr(column, "to_pylist"):
            return pyarrow.table({name: column})
        if callable(getattr(column, "null_count", None)):  # a column of Polars
            return pyarrow.table(column.to_frame()).rename_columns([name])
        return pyarrow.table({name: pyarrow.array(column, from_pandas=True)})
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise TypeError(f"a {type(column).__name__} of {kind} makes no column of Arrow: {error}") from None
