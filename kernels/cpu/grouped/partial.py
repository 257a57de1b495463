"""Partial results of sums to many values: the exact sums of each part of an array, before any rounding. The partial
results of all parts are merged in any order and rounded once. They give the bits of the whole array, however it was
cut.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.folds import SumFold
from warpfold.kernels.cpu.grouped.digits import DIGIT_BITS, Digits, digits_beside, sum_of_digits
from warpfold.kernels.cpu.grouped.fold import GroupedPart
from warpfold.kernels.cpu.grouped.plain import PlainSums
from warpfold.kernels.cpu.grouped.sums import MOST_DIVISOR, AggregatedSums, FloatSums
from warpfold.kernels.cpu.grouped.together import Levels, as_digits, in_levels, rounded
from warpfold.kernels.cpu.grouped.two_levels import TwoLevels
from warpfold.kernels.dtypes import DTYPES, DType, Kind, dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.ops import INTEGER, Finish, NanPolicy, Op, Terms, op_named
from warpfold.kernels.ops.operands import operands
from warpfold.kernels.parts.grouping import AlongAxes, walk_of
from warpfold.kernels.source import ArraySource

_MASK = (1 << DIGIT_BITS) - 1

SLAB = 1 << 14
"""Values that are added up at a time: their limbs stay in the cache."""

_LONG = 1 << 12
"""Elements a value beside which all limbs there are cost nothing."""


@dataclass(frozen=True, slots=True)
class PartialResults:
    """The exact sums of a part of an array, to the values of `shape`, and how many elements entered each. It has sums
    of values, of products or of both, as its op needs; `result` is the dtype of its values."""

    op: str
    result: str
    shape: tuple[int, ...]
    count: int
    sums: tuple[Digits | Levels, ...]

    @staticmethod
    def of(
        array: NDArray[Any], axes: tuple[int, ...], op: str, *, other: NDArray[Any] | None = None
    ) -> "PartialResults":
        """The partial results of `array` along `axes`, which stay in the shape with length 1. Raises InvalidInput for
        an op that adds nothing up, or that needs another array."""
        row = op_named(op)
        if not row.adds:
            raise InvalidInput(f"{op} adds nothing up and has no partial results", "op")
        along = AlongAxes(axes, keepdims=True)
        shape = along.result_shape(array.shape)
        single = prod(shape) == 1
        if other is None and not single and (levels := PartialResults.in_levels(array, axes, op)) is not None:
            return levels
        arrays = (array,) if other is None else (array, other)
        taken = operands(row, ArraySource(array), None if other is None else ArraySource(other))
        count = array.size if single else prod(array.shape[axis] for axis in along.reduced(array.ndim))
        made = partial(PartialResults, op, taken.result_dtype(row), shape, count)
        if single and array.size:
            return made(tuple(map(Digits.of_state, _states(arrays, row))))
        if not taken.source.dtype.is_float and row.terms is Terms.VALUES and not row.magnitudes and _few(array):
            return made((_integer_sums(array, axes),))
        slabs = [
            _slab(tuple(part[where] for part in arrays), along, row)
            for where in _slabs(array.shape, along.reduced(array.ndim))
        ]
        return made(tuple(digits_beside([slab[number] for slab in slabs]) for number in range(len(slabs[0]))))

    @staticmethod
    def in_levels(array: NDArray[Any], axes: tuple[int, ...], op: str) -> "PartialResults | None":
        """As `of`, by the loops for many values; None for an array or an op that these do not serve."""
        row = op_named(op)
        along = AlongAxes(axes, keepdims=True)
        reduced = along.reduced(array.ndim)
        if row.terms is not Terms.VALUES or row.sources > 1 or prod(along.result_shape(array.shape)) == 1:
            return None
        levels: Levels | None = PlainSums.of(array, reduced, magnitudes=row.magnitudes)
        levels = levels or TwoLevels.of(array, reduced, magnitudes=row.magnitudes)
        if levels is None:
            return None
        count = prod(array.shape[axis] for axis in reduced)
        result = row.result_dtype(dtype_of(array.dtype))
        return PartialResults(op, result, along.result_shape(array.shape), count, (levels,))

    @staticmethod
    def merge(parts: Sequence["PartialResults"]) -> "PartialResults":
        """The merged partial results of `parts`, which may come in any order. Raises InvalidInput where they are not
        parts of one reduction."""
        _check_alike(parts)
        first = parts[0]
        sums = tuple(_merged([part.sums[number] for part in parts]) for number in range(len(first.sums)))
        return replace(first, count=sum(part.count for part in parts), sums=sums)

    @staticmethod
    def values_of(parts: Sequence["PartialResults"], dtype: "np.dtype[Any]", ddof: int = 0) -> NDArray[Any]:
        """The values of all parts together: those of the merged partial results, which need not be made for this.
        Raises InvalidInput as `merge` and `values` do."""
        _check_alike(parts)
        first, op, count = parts[0], op_named(parts[0].op), sum(part.count for part in parts)
        levels = [sums for part in parts for sums in part.sums if not isinstance(sums, Digits)]
        if len(levels) == len(parts) and first._at_once(op) and count <= MOST_DIVISOR:
            divisor = count if op.finish is Finish.MEAN else 1
            if (flat := rounded(levels, DTYPES[first.result], divisor)) is not None:
                return flat.astype(dtype, copy=False).reshape(first.shape)
        return PartialResults.merge(parts).values(dtype, ddof)

    def _at_once(self, op: Op) -> bool:
        """Whether all values are rounded by one call."""
        return op.finish in (Finish.ITSELF, Finish.MEAN) and self.result != INTEGER

    def values(self, dtype: "np.dtype[Any]", ddof: int = 0) -> NDArray[Any]:
        """The values, each rounded once, in the shape of the result. `dtype` is that of the result; of integers int64
        or uint64. NaN stands where no elements give a value.

        Raises InvalidInput for a sum of integers that `dtype` does not hold."""
        op, sums = op_named(self.op), self.sums[0]
        flat: NDArray[Any] | None = None
        if op.finish is Finish.ITSELF and self.result == INTEGER and isinstance(sums, Digits):
            flat = sums.whole(dtype)
        elif self._at_once(op) and not isinstance(sums, Digits):
            divisor = self.count if op.finish is Finish.MEAN else min(self.count, 1)
            flat = rounded([sums], DTYPES[self.result], divisor) if 0 < divisor <= MOST_DIVISOR else None
        if flat is None:
            flat = self._finished(op, dtype, ddof)
        with np.errstate(invalid="ignore"):
            return flat.astype(dtype, copy=False).reshape(self.shape)

    def _finished(self, op: Op, dtype: "np.dtype[Any]", ddof: int) -> NDArray[Any]:
        count = 0 if op.ddof and self.count <= ddof else self.count
        if not count:
            return np.full(prod(self.shape), op.empty_or_nan)
        digits = [as_digits(each) for each in self.sums]
        counts, finish = np.full(prod(self.shape), count), ValueFinish(op, self.result, ddof)
        flat = finish.values_by_parts(lambda some: [each.sums(some) for each in digits], counts)
        return _integers(flat, dtype) if self.result == INTEGER else flat


def _check_alike(parts: Sequence[PartialResults]) -> None:
    first = parts[0]
    for part in parts[1:]:
        if (part.op, part.result, part.shape) != (first.op, first.result, first.shape):
            raise InvalidInput(
                f"partial results of {part.op} to {part.result} of shape {part.shape} do not belong to those of "
                f"{first.op} to {first.result} of shape {first.shape}"
            )


def _merged(parts: Sequence[Digits | Levels]) -> Digits | Levels:
    """The sums of all parts together."""
    if len(parts) == 1:
        return parts[0]
    levels = [part for part in parts if not isinstance(part, Digits)]
    if len(levels) == len(parts) and (merged := in_levels(levels)) is not None:
        return merged
    return sum_of_digits([as_digits(part) for part in parts])


def _integers(values: NDArray[Any], dtype: "np.dtype[Any]") -> NDArray[Any]:
    bounds = np.iinfo(dtype)
    least, most = (int(values.min()), int(values.max())) if values.size else (0, 0)
    if least < bounds.min or most > bounds.max:
        beyond = most if most > bounds.max else least
        raise InvalidInput(f"the sum {beyond} does not fit {dtype}")
    return values.astype(dtype)


def _states(arrays: Sequence[NDArray[Any]], op: Op) -> list[ExactState]:
    """The states of all elements together, by the loops that serve single sums."""
    dtypes = [dtype_of(array.dtype) for array in arrays]
    # The order of the elements does not matter, so arrays that are contiguous in any one order are not copied.
    turned = all(array.flags.f_contiguous for array in arrays)
    fold = SumFold(op, dtypes, NanPolicy.PROPAGATE)
    fold.add(0, tuple(_flat(array.T if turned else array, dtype) for array, dtype in zip(arrays, dtypes, strict=True)))
    return fold.states()


def _few(array: NDArray[Any]) -> bool:
    """Whether there are elements, and few enough that no sum of their halves overflows."""
    return 0 < array.size < 1 << 30


def _integer_sums(array: NDArray[Any], axes: tuple[int, ...]) -> Digits:
    """The sums of integers or truth values along axes, by NumPy's sums: of halves of 32 bits, where 64 bits might not
    hold a sum."""
    count = prod(array.shape[axis] for axis in axes)
    largest = 1 if array.dtype.kind == "b" else max(abs(int(array.min())), abs(int(array.max())))
    if largest * count < 1 << 62:
        limbs = [array.sum(axes, dtype=np.int64)]
    else:
        low = (array & array.dtype.type(_MASK)).sum(axes, dtype=np.int64)
        limbs = [low, (array >> array.dtype.type(DIGIT_BITS)).sum(axes, dtype=np.int64)]
    # One more digit above them takes the carries.
    parts = np.stack([limb.reshape(-1) for limb in limbs] + [np.zeros(limbs[0].size, np.int64)] * 2)
    return Digits.of_limbs(Terms.VALUES, 0, parts, np.full(parts.shape[1], int(Flags.NOT_NEGATIVE_ZERO)))


def _flat(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    flat = np.ascontiguousarray(array, dtype=dtype.numpy).reshape(-1)
    return flat.view(np.uint8) != 0 if dtype.kind is Kind.BOOL else flat


def _slabs(shape: Sequence[int], reduced: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Parts of an array of `shape`, each with all elements of at most about SLAB values, in the order of the values."""
    where = [slice(None)] * len(shape)
    kept = [axis for axis in range(len(shape)) if axis not in reduced]

    def cut(number: int) -> Iterator[tuple[slice, ...]]:
        if number == len(kept) or prod(shape[axis] for axis in kept[number:]) <= SLAB:
            yield tuple(where)
            return
        axis, inner = kept[number], prod(shape[axis] for axis in kept[number + 1 :])
        step = max(1, SLAB // inner)
        for start in range(0, shape[axis], step):
            where[axis] = slice(start, start + step)
            yield from cut(number + 1 if step == 1 else len(kept))
        where[axis] = slice(None)

    return cut(0)


def _slab(arrays: tuple[NDArray[Any], ...], along: AlongAxes, op: Op) -> list[Digits]:
    """The sums of one slab."""
    shape = arrays[0].shape
    walk = walk_of(along, shape)
    outputs = prod(along.result_shape(shape))
    whole = [ArraySource(np.ascontiguousarray(array)) for array in arrays]
    flat = tuple(source.read(0, source.count) for source in whole)
    dtypes = [source.dtype for source in whole]
    fold: FloatSums | AggregatedSums
    if dtypes[0].is_float:
        fold = FloatSums(op, dtypes, 0, np.zeros(outputs), windows=_windows(op, dtypes, flat, outputs))
    else:
        fold = AggregatedSums(op, dtypes, 0, outputs)
    if walk.count:
        fold.add(0, GroupedPart(flat, walk.parts(0, walk.count)))
    return [
        Digits.of_limbs(sums.terms, sums.exponent, np.ascontiguousarray(sums.limbs.T), sums.flags)
        for sums in fold.sums()
    ]


def _windows(
    op: Op, dtypes: Sequence[DType], arrays: Sequence[NDArray[Any]], outputs: int
) -> list[tuple[int, int] | None]:
    """The limbs that the sums of these elements need. They are few where the exponents are close to each other."""
    if arrays[0].size >= outputs * _LONG:
        return [None] * (2 if op.terms is Terms.MOMENTS else 1)
    low, high = zip(*map(_bounds, dtypes, arrays), strict=True)
    # A level of a tile is below 2**62, and a deposit reaches three limbs.
    carried = 76 + int(arrays[0].size).bit_length()
    windows: list[tuple[int, int] | None] = []
    for terms in (Terms.VALUES, Terms.PRODUCTS) if op.terms is Terms.MOMENTS else (op.terms,):
        times = 2 if terms is Terms.PRODUCTS and len(arrays) == 1 else 1
        places = times * sum(low) - ORIGIN[terms]
        first = ORIGIN[terms] + places // DIGIT_BITS * DIGIT_BITS  # so that windows of all parts fit each other
        windows.append((first, max(0, times * sum(high) - first + carried) // DIGIT_BITS + 4))
    return windows


def _bounds(dtype: DType, array: NDArray[Any]) -> tuple[int, int]:
    """All finite elements are multiples of 2**low and below 2**high in magnitude."""
    from warpfold.kernels.cpu.windows import levels

    fraction, bias = dtype.precision - 1, dtype.max_exponent - 1
    most, least = levels.bounds(readable(array.reshape(-1), np.dtype(f"int{8 * dtype.itemsize}")))
    if most == 0:
        return -bias - fraction, -bias
    fields = [min(max(1, int(pattern) >> fraction), 2 * bias) for pattern in (least + 1, most)]
    return fields[0] - bias - fraction, fields[1] - bias + 1
