"""The element types that Warpfold reduces, one row each.

NumPy is imported by who asks a row for its NumPy dtype first: names and kinds are known without it, and a short command
does not wait for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from warpfold.kernels.errors import InvalidInput, unknown

if TYPE_CHECKING:
    import numpy as np


class Kind(StrEnum):
    FLOAT = "float"
    INT = "int"
    UINT = "uint"
    BOOL = "bool"


@dataclass(frozen=True, slots=True)
class DType:
    """An element type of `itemsize` bytes an element.

    For floats, `precision` counts the significand bits with the hidden one, and a finite value is an integer
    multiple of 2**`min_exponent` below 2**`max_exponent` (IEEE 754-2019, table 3.5; bfloat16 as float32 with
    8 bits of precision). For the other kinds these three are 0. `native` says whether NumPy and CuPy have the type
    themselves: ml_dtypes adds the others to NumPy, and CuPy holds them as integers of their bits.
    """

    name: str
    kind: Kind
    itemsize: int
    precision: int = 0
    min_exponent: int = 0
    max_exponent: int = 0
    native: bool = True

    @property
    def numpy(self) -> "np.dtype[np.generic]":
        """The NumPy dtype."""
        return _numpy_of(self.name)

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and largest value of an integer or bool type, both included."""
        if self.kind is Kind.BOOL:
            return 0, 1
        bits = 8 * self.itemsize
        return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if self.kind is Kind.INT else (0, (1 << bits) - 1)


@cache
def _numpy_of(name: str) -> "np.dtype[np.generic]":
    import numpy as np

    if not DTYPES[name].native:
        import ml_dtypes

        added: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, name))
        return added
    return np.dtype(name)


def _float(name: str, itemsize: int, precision: int, max_exponent: int, *, native: bool = True) -> DType:
    # The smallest subnormal is 2**(emin - (p - 1)), and emin = 2 - max_exponent in all these formats.
    return DType(name, Kind.FLOAT, itemsize, precision, 3 - max_exponent - precision, max_exponent, native)


_ROWS = (
    _float("float16", 2, 11, 16),
    _float("bfloat16", 2, 8, 128, native=False),
    _float("float32", 4, 24, 128),
    _float("float64", 8, 53, 1024),
    *(DType(f"int{8 * size}", Kind.INT, size) for size in (1, 2, 4, 8)),
    *(DType(f"uint{8 * size}", Kind.UINT, size) for size in (1, 2, 4, 8)),
    DType("bool", Kind.BOOL, 1),
)

DTYPES: Mapping[str, DType] = MappingProxyType({row.name: row for row in _ROWS})


def dtype_named(name: str, field: str = "dtype") -> DType:
    """The row called `name`; InvalidInput that names `field` for an unknown name."""
    try:
        return DTYPES[name]
    except KeyError:
        raise unknown("dtype", name, DTYPES, field) from None


def dtype_of(numpy_dtype: "np.dtype[np.generic]", field: str = "dtype") -> DType:
    """The row of a NumPy dtype, in native byte order or not; InvalidInput for structured, complex, … dtypes."""
    row = _row_of(numpy_dtype)
    if row is None:
        raise InvalidInput(f"dtype {numpy_dtype!s} cannot be reduced; known: {', '.join(DTYPES)}", field)
    return row


@lru_cache(maxsize=256)  # every part of an array is asked for its dtype
def _row_of(numpy_dtype: "np.dtype[np.generic]") -> DType | None:
    native = numpy_dtype.newbyteorder("=")
    return next((row for row in _ROWS if row.numpy == native), None)


def common_float(a: DType, b: DType) -> DType:
    """The narrowest float dtype that holds all values of the floats `a` and `b`: float32 for float16 with bfloat16."""
    assert a.kind is b.kind is Kind.FLOAT, f"{a.name}, {b.name}"
    return next(
        row
        for row in _ROWS
        if row.precision >= max(a.precision, b.precision) and row.max_exponent >= max(a.max_exponent, b.max_exponent)
    )


COMPLEX: Mapping[str, str] = MappingProxyType({"complex64": "float32", "complex128": "float64"})
"""The dtypes of complex numbers, and those of their two parts."""


def part_dtype(dtype: "np.dtype[Any]") -> "np.dtype[Any] | None":
    """The dtype of the parts of complex numbers, in their byte order; None of another dtype."""
    name = COMPLEX.get(str(dtype.newbyteorder("=")))
    return None if name is None else DTYPES[name].numpy.newbyteorder(dtype.byteorder)
