"""Conversion of arrays to another dtype. Only floats are ever rounded: once, to nearest, ties to even."""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType, Kind, common_float, dtype_of
from warpfold.kernels.errors import InvalidInput

_CHUNK = 1 << 18
"""Elements that are checked together, so that intermediate arrays stay small."""

Array = NDArray[Any]


def converted(array: Array, dtype: DType) -> Array:
    """`array`, of any shape, with its elements converted to `dtype`; `array` itself where it has that dtype.

    A float is rounded once to a narrower float dtype. Raises InvalidInput for an element that `dtype` does not hold: an
    integer with more digits than the float has, an integer out of range, a fraction as an integer, a finite float that
    would become infinite.
    """
    own = dtype_of(array.dtype)
    if own is dtype:
        return array
    at = _first_fault(array, own, dtype)
    if at is not None:
        advice = "; convert to a float yourself to have it rounded" if dtype.is_float and not own.is_float else ""
        raise InvalidInput(f"{dtype.name} does not hold {array.flat[at].item()!r}{advice}")
    if not dtype.native:  # ml_dtypes rounds twice, by way of float32
        return narrowed(array.astype(np.float64), dtype)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return array.astype(own.numpy if own.native else np.float64).astype(dtype.numpy)


def common_dtype(arrays: Sequence[Array]) -> DType | None:
    """The dtype that all of `arrays` can be converted to without a rounding; None where no dtype is.

    Floats get the narrowest float that holds them all, and integers what NumPy promotes them to. Where NumPy would
    promote integers to float64, they get int64 or uint64 if either holds each element. Integers beside floats get a
    float dtype if it holds each element.
    """
    dtypes = list(dict.fromkeys(dtype_of(array.dtype) for array in arrays))
    if len(dtypes) == 1:
        return dtypes[0]
    whole = [dtype for dtype in dtypes if not dtype.is_float]
    floats = [dtype for dtype in dtypes if dtype.is_float]
    if not floats:
        promoted = np.result_type(*(dtype.numpy for dtype in whole))
        offered = [DTYPES["int64"], DTYPES["uint64"]] if promoted.kind == "f" else [dtype_of(promoted)]
    else:
        offered = [reduce(_beside, whole, reduce(common_float, floats))]
    for dtype in offered:
        if all(_first_fault(array, dtype_of(array.dtype), dtype) is None for array in arrays):
            return dtype
    return None


def _beside(floats: DType, whole: DType) -> DType:
    """The narrowest float dtype that holds `floats` and each value of `whole`; float64 for the integers of 64 bits,
    whose values have to be looked at."""
    low, high = whole.bounds
    digits = max(-low - 1, high).bit_length()
    able = (row for row in DTYPES.values() if row.is_float and common_float(row, floats) is row)
    return next((row for row in able if row.precision >= digits), DTYPES["float64"])


def _first_fault(array: Array, own: DType, dtype: DType) -> int | None:
    """Index, in C order, of the first element that `dtype` does not hold; None where it holds them all."""
    if own is dtype or own.kind is Kind.BOOL or _holds(own, dtype):
        return None
    start = 0
    for piece in _pieces(array):
        if own.is_float:
            faulty = _too_large(piece, dtype) if dtype.is_float else _not_whole(piece, dtype)
        else:
            faulty = _rounded(piece, dtype) if dtype.is_float else _out_of_range(piece, dtype)
        if faulty.any():
            return start + int(faulty.argmax())
        start += piece.size
    return None


def _holds(own: DType, dtype: DType) -> bool:
    """Whether `dtype` holds all values of `own`, so that no element need be looked at."""
    if own.is_float:
        return dtype.is_float and common_float(own, dtype) is dtype
    (low, high), (least, most) = own.bounds, dtype.bounds if not dtype.is_float else (0, 0)
    if dtype.is_float:
        return max(-low - 1, high).bit_length() <= dtype.precision
    return least <= low and high <= most


def _pieces(array: Array) -> Iterator[Array]:
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    for start in range(0, array.size, _CHUNK):
        yield np.asarray(flat[start : start + _CHUNK])


def _too_large(piece: Array, dtype: DType) -> NDArray[np.bool_]:
    wide = piece.astype(np.float64)
    return np.isfinite(wide) & ~np.isfinite(narrowed(wide, dtype).astype(np.float64))


def _not_whole(piece: Array, dtype: DType) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        wide = piece.astype(np.float64)
        # The bounds of a dtype, the upper one excluded, are powers of two, or 0 or 1: float64 holds them.
        low, high = dtype.bounds
        fine: NDArray[np.bool_] = (wide >= low) & (wide < float(high + 1)) & (np.trunc(wide) == wide)
    return ~fine


def _out_of_range(piece: Array, dtype: DType) -> NDArray[np.bool_]:
    low, high = dtype.bounds
    # NumPy compares integers with Python's as integers, whatever their sizes.
    faulty: NDArray[np.bool_] = (piece < low) | (piece > high)
    return faulty


def _rounded(piece: Array, dtype: DType) -> NDArray[np.bool_]:
    """A mask of the integers that have more bits, from the first to the last that is set, than the float dtype
    keeps."""
    bits = piece.astype(np.uint64)
    magnitude = np.where(piece < 0, ~bits + np.uint64(1), bits)
    last = magnitude & (~magnitude + np.uint64(1))
    faulty: NDArray[np.bool_] = (magnitude >> np.uint64(dtype.precision)) >= np.maximum(last, np.uint64(1))
    if dtype.max_exponent < 64:
        faulty |= (magnitude >> np.uint64(dtype.max_exponent)) > 0
    return faulty


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
