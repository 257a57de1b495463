"""Columns of data frames as NumPy arrays: of pandas, Polars, Arrow, and of libraries with the same interfaces. None of
them is imported. Columns whose `to_numpy` would round or invent values, such as floats for integers beside a null, are
refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np

_PLAIN = frozenset(
    {"bool", "boolean", "halffloat", "float", "double"}
    | {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
    | {f"float{bits}" for bits in (16, 32, 64)}
)
"""dtypes of Polars and types of Arrow, in small letters, that NumPy has."""

_FLOATS = frozenset({"halffloat", "float", "double", "float16", "float32", "float64"})


def columns_of(data: Any) -> Sequence[tuple[str, Any]] | None:
    """The columns of a frame with their names; None where `data` is no frame."""
    kind = type(data)  # a pandas Series itself has its labels as attributes
    if hasattr(kind, "iloc") and hasattr(kind, "columns"):
        return [(str(name), data.iloc[:, at]) for at, name in enumerate(data.columns)]
    if hasattr(kind, "get_columns"):
        return [(str(column.name), column) for column in data.get_columns()]
    if hasattr(kind, "column_names") and hasattr(kind, "schema"):
        return list(zip(map(str, data.column_names), data.columns, strict=True))
    return None


def without_nulls(column: Any) -> tuple[Any, int]:
    """A column without its nulls, and how many nulls it had; data that is no column is returned as it is. NaN is not a
    null: a column of pandas whose dtype is one of NumPy has only NaN, and no nulls."""
    kind = type(column)
    if hasattr(kind, "isna") and hasattr(column, "dtype"):
        nulls = 0 if isinstance(column.dtype, np.dtype) else int(column.isna().sum())
        return (column.dropna(), nulls) if nulls else (column, 0)
    if hasattr(kind, "drop_nulls") and callable(getattr(column, "null_count", None)):
        return (column.drop_nulls(), int(column.null_count())) if column.null_count() else (column, 0)
    if hasattr(kind, "drop_null") and hasattr(kind, "to_pylist"):
        return (column.drop_null(), int(column.null_count)) if column.null_count else (column, 0)
    return column, 0


def numbers_in(column: Any) -> object:
    """The elements of a column with a `to_numpy`: a NumPy array or, where NumPy has no dtype for them, a list of Python
    objects. A null among floats is NaN. Raises TypeError for a null among other elements, and for a column that holds
    no numbers."""
    if hasattr(column, "isna") and hasattr(column, "dtype"):
        return _of_pandas(column)
    if callable(getattr(column, "null_count", None)) and hasattr(column, "to_list"):
        return _of_polars(column)
    if hasattr(column, "null_count") and hasattr(column, "to_pylist"):
        return _of_arrow(column)
    return column.to_numpy()


def _of_pandas(column: Any) -> object:
    dtype = column.dtype
    kind = getattr(dtype, "kind", "O")
    if kind in "iub" and column.isna().any():
        raise nulls_in(dtype)
    if str(dtype) == "category" or str(dtype).startswith("dictionary"):
        raise TypeError("categories are not numbers: convert them to the dtype of their values by `.astype`")
    array = column.to_numpy()
    if kind == "f" and array.dtype.kind == "O":  # raised by pandas 2 for a null
        array = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if array.dtype.kind == "O":
        return list(array)
    if array.dtype.kind != kind:
        raise TypeError(f"{dtype} cannot be reduced: NumPy treats it as {array.dtype}")
    return array


def _of_polars(column: Any) -> object:
    name = str(column.dtype).lower()
    if name.startswith("array("):
        if column.null_count():
            raise nulls_in(column.dtype)
        return np.asarray(numbers_in(column.reshape((-1,)))).reshape(-1, *column.dtype.shape)
    if name in _PLAIN:
        if name not in _FLOATS and column.null_count():
            raise nulls_in(name)
        return column.to_numpy()
    if name.startswith(("int", "uint", "decimal", "object")):
        return column.to_list()
    raise TypeError(f"{column.dtype} cannot be reduced")


def _of_arrow(column: Any) -> object:
    name = str(column.type)
    if name in _PLAIN:
        if name not in _FLOATS and column.null_count:
            raise nulls_in(name)
        return column.to_numpy(zero_copy_only=False)
    if name.startswith("decimal"):
        return column.to_pylist()
    raise TypeError(f"{name} cannot be reduced")


def nulls_in(dtype: object) -> TypeError:
    """The error of a column of this dtype whose nulls may not be left out."""
    name = str(dtype).lower()
    return TypeError(f"{name} has nulls: drop them, or fill them with a value first")
