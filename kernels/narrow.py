"""Rounding of float64 numbers to the dtype of the elements: once, to nearest, ties to even."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType


def narrow_into(out: NDArray[Any], values: NDArray[np.floating[Any]], dtype: DType) -> None:
    """Round `values` once into `out`, of the same shape and of a float dtype. Beyond its range they become infinite.

    ml_dtypes rounds float64 to bfloat16 by way of float32, that is twice. So values for such a dtype are first rounded
    to a multiple of its unit in the last place, by adding and subtracting 1.5·2**52 units, which leaves the conversion
    nothing to round. The unit of |x| follows from its exponent bits, within the units of the dtype's subnormals and of
    its largest numbers.
    """
    if not dtype.native:
        power = (values.view(np.int64) & 0x7FF0000000000000).view(np.float64)
        least, most = (1.5 * 2.0 ** (52 + unit) for unit in (dtype.min_exponent, dtype.max_exponent - dtype.precision))
        anchor = np.clip(power * (1.5 * 2.0 ** (53 - dtype.precision)), least, most)
        values = np.copysign((values + anchor) - anchor, values).astype(np.float32)
    out[...] = values


def narrowed(values: NDArray[np.float64], dtype: DType) -> NDArray[Any]:
    """`values` rounded once to a float dtype; NaN and infinities stay what they are."""
    out = np.empty(values.shape, dtype=dtype.numpy)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow_into(out, values, dtype)
    return out


def narrowed_number(value: float, dtype: DType) -> float:
    """`value` rounded once to a float dtype, as the Python float of the same value."""
    return float(narrowed(np.asarray(value), dtype))
