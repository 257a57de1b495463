"""Arrays from the numbers that people write: JSON numbers, hex floats, "nan", "inf", "-inf"."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType, Kind
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.narrow import narrowed

Written = bool | int | float | str

_LONGEST_SHOWN = 128  # bits


def array_of(values: Sequence[Written], dtype: DType, field: str = "values") -> NDArray[Any]:
    """`values` as an array of `dtype`, shape (len(values),).

    For float dtypes each value is read as a float64 and rounded once to `dtype` (to nearest, ties to even); a finite
    value that would round to infinity is an error, as are fractions for integer dtypes and anything out of range.
    Raises InvalidInput naming `field` and the index of the first offender.
    """
    if dtype.is_float:
        return _floats(values, dtype, field)
    low, high = dtype.bounds
    whole = [_whole(value, dtype, low, high, f"{field}.{index}") for index, value in enumerate(values)]
    return np.array(whole, dtype=dtype.numpy)


def _floats(values: Sequence[Written], dtype: DType, field: str) -> NDArray[Any]:
    wide = np.array([_real(value, f"{field}.{index}") for index, value in enumerate(values)], dtype=np.float64)
    narrow = narrowed(wide, dtype)
    overflowed = np.isfinite(wide) & ~np.isfinite(narrow.astype(np.float64))
    if overflowed.any():
        index = int(np.argmax(overflowed))
        raise InvalidInput(f"{float(wide[index])!r} is beyond the range of {dtype.name}", f"{field}.{index}")
    return narrow


def _real(value: Written, field: str) -> float:
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("nan", "inf", "-inf", "+inf"):
            return float(text)
        try:
            return float.fromhex(text) if "x" in text else float(text)
        except (ValueError, OverflowError):
            raise InvalidInput(f'{value!r} is not a number, a hex float, "nan", "inf" or "-inf"', field) from None
    try:
        return float(value)
    except OverflowError:
        raise InvalidInput("the integer is beyond the range of float64", field) from None


def _whole(value: Written, dtype: DType, low: int, high: int, field: str) -> int:
    if isinstance(value, str):
        try:
            number = int(value, 0)
        except ValueError:
            raise InvalidInput(f"{value!r} is not an integer", field) from None
    elif isinstance(value, float):
        if not (math.isfinite(value) and value.is_integer()):
            raise InvalidInput(f"{value!r} is not a whole number, and the dtype is {dtype.name}", field)
        number = int(value)
    else:
        number = int(value)
    if not low <= number <= high:
        kind = "false or true" if dtype.kind is Kind.BOOL else f"{low} … {high}"
        shown = number if number.bit_length() <= _LONGEST_SHOWN else f"an integer of {number.bit_length()} bits"
        raise InvalidInput(f"{shown} is beyond the range of {dtype.name} ({kind})", field)
    return number
