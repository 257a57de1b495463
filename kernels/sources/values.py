"""Arrays made of the numbers that people write: JSON numbers, hex floats, "nan", "inf", "-inf".

An integer stays an integer: it is never rounded to a float. A number that is written as a float, with a point or an
exponent, is read as a float64, which is what such a literal means.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType, Kind
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.conversion import narrowed
from warpfold.kernels.sources.written import EXACT

Written = bool | int | float | str

_LONGEST_SHOWN = 128  # bits
_NAMED = frozenset(sign + name for sign in ("", "+", "-") for name in ("nan", "inf", "infinity"))


def dtype_for(values: Sequence[Written], field: str = "values") -> DType:
    """The dtype of numbers that were written without a dtype.

    It is bool for false and true alone; int64 for integers, and for false and true beside them, or uint64 where they
    need it; float64 where any number is written as a float, and for an empty sequence. Raises InvalidInput naming
    `field` and an index for integers that no dtype holds together.
    """
    if not values:
        return DTYPES["float64"]
    whole: list[int] = []
    for index, value in enumerate(values):
        number = _read(value, f"{field}.{index}") if isinstance(value, str) else value
        if isinstance(number, float):
            return DTYPES["float64"]
        whole.append(number)
    if all(isinstance(value, bool) for value in values):
        return DTYPES["bool"]
    low, high = min(whole), max(whole)
    for dtype in (DTYPES["int64"], DTYPES["uint64"]):
        least, most = dtype.bounds
        if least <= low and high <= most:
            return dtype
    extreme = high if high > DTYPES["int64"].bounds[1] else low
    beside = f" beside {_shown(low)}" if low < 0 and extreme is high else ""
    raise InvalidInput(
        f"neither int64 nor uint64 holds {_shown(extreme)}{beside}; give the dtype float64 if it holds them, or write "
        "floats (with a point) to have them rounded",
        f"{field}.{whole.index(extreme)}",
    )


def array_of(values: Sequence[Written], dtype: DType, field: str = "values") -> NDArray[Any]:
    """`values` as an array of `dtype`, shape (len(values),).

    For float dtypes a number written as a float is read as a float64 and rounded once to `dtype` (to nearest, ties to
    even); an integer that the dtype does not hold is an error, as are a finite value that would round to infinity,
    fractions for integer dtypes and anything out of range. Raises InvalidInput naming `field` and the index of the
    first offender.
    """
    if dtype.is_float:
        return _floats(values, dtype, field)
    low, high = dtype.bounds
    whole = [_whole(value, dtype, low, high, f"{field}.{index}") for index, value in enumerate(values)]
    return np.array(whole, dtype=dtype.numpy)


def _floats(values: Sequence[Written], dtype: DType, field: str) -> NDArray[Any]:
    if set(map(type, values)) == {float}:  # most are, and there are many
        wide = np.array(values, dtype=np.float64)
    else:
        written = [_real(value, dtype, f"{field}.{index}") for index, value in enumerate(values)]
        wide = np.array(written, dtype=np.float64)
    if dtype.numpy == wide.dtype:
        return wide
    narrow = narrowed(wide, dtype)
    overflowed = np.isfinite(wide) & ~np.isfinite(narrow.astype(np.float64))
    if overflowed.any():
        index = int(np.argmax(overflowed))
        raise InvalidInput(f"{float(wide[index])!r} is beyond the range of {dtype.name}", f"{field}.{index}")
    return narrow


def _real(value: Written, dtype: DType, field: str) -> float:
    number = _read(value, field) if isinstance(value, str) else value
    if isinstance(number, float):
        return number
    # Bits from the first to the last that is set: zeros behind them are the exponent's.
    significant = number.bit_length() - ((number & -number).bit_length() - 1) if number else 0
    if number.bit_length() > dtype.max_exponent:
        raise InvalidInput(f"{_shown(number)} is beyond the range of {dtype.name}", field)
    if significant > dtype.precision:
        raise InvalidInput(
            f"{dtype.name} does not hold {_shown(number)}; write it as a float (with a point) to have it rounded, or "
            "choose an integer dtype",
            field,
        )
    return float(number)


def _read(text: str, field: str) -> int | float:
    """The number that `text` says, an integer where it is written as one."""
    plain = text.strip().lower()
    is_float = "." in plain or ("e" in plain and "x" not in plain)  # an attempt that fails costs three times the number
    for base in () if is_float else (10, 0):  # 0: also with a prefix, such as 0x1f
        try:
            return int(plain, base)
        except ValueError:
            continue
    if plain in _NAMED:
        return float(plain)
    try:
        number = float.fromhex(plain) if "x" in plain else float(plain)
    except OverflowError:  # a hex float is too large
        number = math.inf
    except ValueError:
        raise InvalidInput(f'{text!r} is not a number, a hex float, "nan", "inf" or "-inf"', field) from None
    if math.isinf(number):
        raise InvalidInput(f'{text!r} is beyond the range of float64; an infinity is written "inf" or "-inf"', field)
    return number


def _whole(value: Written, dtype: DType, low: int, high: int, field: str) -> int:
    if isinstance(value, str):
        read = _read(value, field)
        if isinstance(read, float):
            raise InvalidInput(f"{value!r} is not an integer", field)
        number = read
    elif isinstance(value, float):
        if not (math.isfinite(value) and value.is_integer()):
            raise InvalidInput(f"{value!r} is not a whole number, and the dtype is {dtype.name}", field)
        number = int(value)
        if abs(number) > EXACT and low <= number <= high:
            raise InvalidInput(f"{value!r} was rounded as a float; write it as an integer, without a point", field)
    else:
        number = int(value)
    if not low <= number <= high:
        kind = "false or true" if dtype.kind is Kind.BOOL else f"{low} … {high}"
        raise InvalidInput(f"{_shown(number)} is beyond the range of {dtype.name} ({kind})", field)
    return number


def _shown(number: int) -> str:
    return str(number) if number.bit_length() <= _LONGEST_SHOWN else f"an integer of {number.bit_length()} bits"
