"""Exact sums of NumPy arrays with NumPy alone: the definition of an exact state, short rather than fast.

An element is m · 2**e with an integer m. Its bits index the sum of m over the elements of one exponent, which is exact
in float64 as long as it stays below 2**53; the exponents are then put together in Python integers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType, Kind, common_float, dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.encoding import ORIGIN, Fields, Flags
from warpfold.kernels.ops import Terms

CHUNK = 1 << 16
"""Elements at a time: intermediate arrays stay in the cache, and digits below 2**27 sum to below 2**43."""

DIGIT = 27
"""Bits of a digit of a term."""

_DIGIT_MASK = (1 << DIGIT) - 1


def values(array: NDArray[Any], *, magnitudes: bool = False) -> Fields:
    """The fields of the state of the elements of `array`, or of their absolute values."""
    _check_unmasked(array)
    dtype = dtype_of(array.dtype)
    flat = np.ascontiguousarray(array, dtype=dtype.numpy).reshape(-1)
    if not dtype.is_float:
        return _of_integer(Terms.VALUES, _sum_integers(flat, magnitudes), flat.size)
    units, flags = 0, Flags.NONE
    for part in _chunks(flat):
        x = split_values(part, dtype, magnitudes=magnitudes)
        flags |= _flags(x)
        units += _gather(x)
    # exponent 0 counts units of the dtype's smallest subnormal
    return Fields(Terms.VALUES, units << (dtype.min_exponent - ORIGIN[Terms.VALUES]), flat.size, flags)


def products(left: NDArray[Any], right: NDArray[Any]) -> Fields:
    """The fields of the state of the products of two arrays of one shape, element by element; either both hold floats,
    or neither does."""
    _check_unmasked(left, right)
    kinds = dtype_of(left.dtype), dtype_of(right.dtype)
    if kinds[0].is_float != kinds[1].is_float or left.shape != right.shape:
        raise InvalidInput(f"products of {left.dtype}{left.shape} with {right.dtype}{right.shape} are undefined")
    # Widening a float changes no value.
    dtype = common_float(*kinds) if kinds[0].is_float else kinds[0]
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        a, b = (
            np.ascontiguousarray(array, dtype=(dtype if kind.is_float else kind).numpy).reshape(-1)
            for array, kind in zip((left, right), kinds, strict=True)
        )
    if not dtype.is_float:
        return _of_integer(Terms.PRODUCTS, _dot_integers(a, b), a.size)
    units, flags = 0, Flags.NONE
    squares = left is right
    for part, other in zip(_chunks(a), _chunks(b), strict=True):
        x = split_products(part, part if squares else other, dtype)
        flags |= _flags(x)
        units += _gather(x)
    return Fields(Terms.PRODUCTS, units << (2 * dtype.min_exponent - ORIGIN[Terms.PRODUCTS]), a.size, flags)


@dataclass(frozen=True, slots=True)
class SplitTerms:
    """Terms taken apart, each field of shape (n,): |term| = Σ digits[k] · 2**(27 k + exponent) units of the smallest
    subnormal of a dtype, or of its square for products. Terms that are NaN or infinite have digits 0."""

    negative: NDArray[np.bool_]
    exponent: NDArray[np.int64]
    digits: tuple[NDArray[np.int64], ...]
    nan: NDArray[np.bool_]
    infinite: NDArray[np.bool_]
    zero: NDArray[np.bool_]


def split_values(part: NDArray[Any], dtype: DType, *, magnitudes: bool = False) -> SplitTerms:
    """The elements of a contiguous `part` of a float dtype, or their absolute values, as terms."""
    x = _split(part, dtype)
    negative = np.zeros_like(x.negative) if magnitudes else x.negative
    digits = (x.significand & _DIGIT_MASK, x.significand >> DIGIT)
    return SplitTerms(
        negative, x.exponent, digits if dtype.precision > DIGIT else digits[:1], x.nan, x.infinite, x.zero
    )


def split_products(part: NDArray[Any], other: NDArray[Any], dtype: DType) -> SplitTerms:
    """The products of the elements of two contiguous arrays of one float dtype as terms."""
    x = _split(part, dtype)
    y = x if other is part else _split(other, dtype)
    negative = x.negative ^ y.negative
    # IEEE 754 on each pair: NaN in, or ∞·0, gives NaN; otherwise ∞ and zeros have the product of the signs.
    nan = x.nan | y.nan | (x.infinite & y.zero) | (x.zero & y.infinite)
    # 27-bit halves: first < 2**54, middle < 2**54 + 2**27, last < 2**52 + 2**28, each cut back to a digit.
    first = (x.significand & _DIGIT_MASK) * (y.significand & _DIGIT_MASK)
    middle = (x.significand & _DIGIT_MASK) * (y.significand >> DIGIT)
    middle += (x.significand >> DIGIT) * (y.significand & _DIGIT_MASK) + (first >> DIGIT)
    last = (x.significand >> DIGIT) * (y.significand >> DIGIT) + (middle >> DIGIT)
    digits = (first & _DIGIT_MASK, middle & _DIGIT_MASK, last & _DIGIT_MASK, last >> DIGIT)
    return SplitTerms(
        negative,
        x.exponent + y.exponent,
        digits if dtype.precision > DIGIT else digits[:2],
        nan,
        (x.infinite | y.infinite) & ~nan,
        (x.zero | y.zero) & ~nan,
    )


def _check_unmasked(*arrays: NDArray[Any]) -> None:
    # NumPy would add the elements that the mask hides.
    if any(isinstance(array, np.ma.MaskedArray) for array in arrays):
        raise InvalidInput("a masked array is ambiguous: pass its `.compressed()` elements or its `.filled(value)`")


@dataclass(frozen=True, slots=True)
class _Parts:
    """Floats taken apart, each field of shape (n,): |x| = significand · 2**exponent units of the dtype's smallest
    subnormal; NaN and infinities have significand 0. Integer operations only, so that no NaN raises a warning."""

    negative: NDArray[np.bool_]
    exponent: NDArray[np.int64]
    significand: NDArray[np.int64]
    nan: NDArray[np.bool_]
    infinite: NDArray[np.bool_]

    @property
    def zero(self) -> NDArray[np.bool_]:
        return np.logical_not(self.significand.astype(np.bool_) | self.nan | self.infinite)


def _split(part: NDArray[Any], dtype: DType) -> _Parts:
    width, fraction = 8 * dtype.itemsize, dtype.precision - 1
    top = 2 * dtype.max_exponent - 1  # the exponent field of NaN and infinities
    bits = part.view(f"int{width}").astype(np.int64)
    field = (bits >> fraction) & top
    significand = bits & ((1 << fraction) - 1)
    special = field == top
    nan = special & (significand != 0)
    significand = np.where(field > 0, significand | (1 << fraction), significand)
    significand[special] = 0
    return _Parts(bits < 0, np.maximum(field - 1, 0), significand, nan, special & ~nan)


def _flags(terms: SplitTerms) -> Flags:
    negative, infinite = terms.negative, terms.infinite
    flags = Flags.NAN if terms.nan.any() else Flags.NONE
    if infinite.any():
        flags |= Flags.POS_INF if (infinite & ~negative).any() else Flags.NONE
        flags |= Flags.NEG_INF if (infinite & negative).any() else Flags.NONE
    return flags if (terms.zero & negative).all() else flags | Flags.NOT_NEGATIVE_ZERO


def _gather(terms: SplitTerms) -> int:
    """Σ ± 2**exponent · Σ digits[k] · 2**(27 k), where no digit exceeds 2**27."""
    total, lowest = 0, int(terms.exponent.min()) if terms.exponent.size else 0
    exponents = terms.exponent - lowest
    signs = np.where(terms.negative, -1.0, 1.0)
    for place, digit in enumerate(terms.digits):
        sums = np.bincount(exponents, weights=signs * digit)
        for index in np.flatnonzero(sums).tolist():
            total += int(sums[index]) << (index + DIGIT * place)
    return total << lowest


def _of_integer(terms: Terms, total: int, count: int) -> Fields:
    flags = Flags.NOT_NEGATIVE_ZERO if count else Flags.NONE
    return Fields(terms, total << -ORIGIN[terms], count, flags)


def _halves(array: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """high and low in int64 with x = high · 2**32 + low and 0 ≤ low < 2**32, for any integer dtype or bool."""
    if array.dtype == np.uint64:
        return (array >> np.uint64(32)).astype(np.int64), (array & np.uint64(0xFFFFFFFF)).astype(np.int64)
    wide = array.astype(np.int64)
    return wide >> 32, wide & 0xFFFFFFFF


def _chunks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (array[at : at + CHUNK] for at in range(0, array.size, CHUNK))


def _sum_integers(array: NDArray[Any], magnitudes: bool) -> int:
    total = 0
    signed = dtype_of(array.dtype).kind is Kind.INT
    for part in _chunks(array):
        # 2**16 halves of 32 bits sum to below 2**48.
        high, low = _halves(part)
        if magnitudes and signed:
            negative = part < 0
            for sign, mask in ((1, ~negative), (-1, negative)):
                total += sign * ((int(high[mask].sum()) << 32) + int(low[mask].sum()))
        else:
            total += (int(high.sum()) << 32) + int(low.sum())
    return total


def _dot_integers(left: NDArray[Any], right: NDArray[Any]) -> int:
    total = 0
    for a, b in zip(_chunks(left), _chunks(right), strict=True):
        a_high, a_low = _halves(a)
        b_high, b_low = _halves(b)
        for x, y, shift in ((a_high, b_high, 64), (a_high, b_low, 32), (a_low, b_high, 32), (a_low, b_low, 0)):
            total += _dot_halves(x, y) << shift
    return total


def _dot_halves(x: NDArray[Any], y: NDArray[Any]) -> int:
    """Σ x·y for |x|, |y| ≤ 2**32: y in pieces of 14 bits, the last signed: 2**16 products sum to ≤ 2**62."""
    pieces = (y & 0x3FFF, (y >> 14) & 0x3FFF, y >> 28)
    return sum(int((x * piece).sum()) << (14 * index) for index, piece in enumerate(pieces))
