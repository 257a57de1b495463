"""Elements as bit patterns: finding NaN by them raises no floating-point flag for a signalling NaN."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput


def is_nan(part: NDArray[Any], dtype: DType) -> NDArray[np.bool_]:
    """A mask of the elements of a contiguous `part` of a float dtype that are NaN, shape (n,)."""
    width = 8 * dtype.itemsize
    bits = part.view(f"uint{width}")
    magnitude = bits.dtype.type((1 << (width - 1)) - 1)
    infinity = bits.dtype.type((2 * dtype.max_exponent - 1) << (dtype.precision - 1))
    nans: NDArray[np.bool_] = (bits & magnitude) > infinity
    return nans


def refuse_nan(start: int, part: NDArray[Any], dtype: DType, what: str = "element") -> None:
    """Raise InvalidInput naming the index of the first NaN of `part`, whose first element has index `start`; the
    message calls an element `what`."""
    nans = is_nan(part, dtype)
    if nans.any():
        raise InvalidInput(f"{what} {start + int(nans.argmax())} is NaN, and nan_policy is raise", "nan_policy")


def widened(part: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """The same values in a dtype that NumPy itself compares: float16 and bfloat16 as float32, any other as it is."""
    if not dtype.is_float or dtype.itemsize >= 4:
        return part
    width = 8 * dtype.itemsize
    if dtype.max_exponent == DTYPES["float32"].max_exponent:  # its 16 bits are the upper half of a float32
        return (part.view(f"uint{width}").astype(np.uint32) << (32 - width)).view(np.float32)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return part.astype(np.float32)


def readable(array: NDArray[Any], bits: "np.dtype[Any]") -> NDArray[Any]:
    """`array` as a contiguous, aligned view of `bits`, copied only if it must be. The view is always read-only, as a
    memory map is, so that Numba compiles one version."""
    view = np.require(array, requirements=["C", "A"]).view(bits)
    view.flags.writeable = False
    return view
