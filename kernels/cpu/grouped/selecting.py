"""Ops of many values that add nothing up: extremes and their places, what is counted, and all that need a fold apart.

Elements are compared by keys: integers of their width that sort as the elements do. A float's key is its pattern, whose
lower bits are turned over where the sign is set, so that keys sort −∞ … −0, +0 … ∞. For the largest element all bits of
the key are turned over, so that all ops look for the least key. A NaN has the least key of all or, where NaNs are left
out, the largest. Undoing these steps turns a key into a value of the op again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.cpu.folds.by_name import fold_for
from warpfold.kernels.cpu.grouped.fold import GroupedPart
from warpfold.kernels.dtypes import DType, Kind
from warpfold.kernels.grouping import Index
from warpfold.kernels.ops import Extreme, NanPolicy, Op, Value


class Keys:
    """The keys of elements of a dtype, by which `op` looks for the least."""

    def __init__(self, op: Op, dtype: DType, *, omit: bool) -> None:
        width = 8 * dtype.itemsize
        self._dtype = dtype
        self._absolute = op.magnitudes
        self._equal_zeros = op.places
        self.word = np.dtype(f"int{width}")
        least, most = (self.word.type(bound) for bound in (np.iinfo(self.word).min, np.iinfo(self.word).max))
        self._magnitude = most
        self._sign = self.word.type(width - 1)
        self._of_nan = most if omit else least
        unsigned = dtype.kind is Kind.UINT or (op.magnitudes and dtype.kind is Kind.INT)
        # −1 turns all bits over; the sign's bit sorts unsigned numbers among signed ones.
        flip = (-1 if op.extreme is Extreme.MOST else 0) ^ (int(least) if unsigned else 0)
        self._flip = self.word.type(flip)
        self.none = most

    def numbers(self) -> tuple[int, int, int]:
        """The mask by which every key is turned over, the key of a NaN, and the key that stands for no element."""
        return int(self._flip), int(self._of_nan), int(self.none)

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """The keys of `array`, shape (n,)."""
        words: Any = readable(array, self.word)
        if not self._dtype.is_float:
            if self._absolute and self._dtype.kind is Kind.INT:
                signs = words >> self._sign
                words = (words ^ signs) - signs  # |−2**63| has the pattern of 2**63
            return np.asarray(words ^ self._flip if self._flip else words)
        magnitudes = words & self._magnitude
        nans = magnitudes > self._infinity()
        if self._absolute:
            keys = magnitudes
        else:
            keys = words ^ ((words >> self._sign) & self._magnitude)
            if self._equal_zeros:
                keys[magnitudes == 0] = 0
        keys = keys ^ self._flip if self._flip else keys
        if nans.any():
            keys[nans] = self._of_nan
        return np.asarray(keys)

    def elements(self, keys: NDArray[Any]) -> NDArray[Any]:
        """The elements that have these keys, or their magnitudes; of a NaN, some NaN."""
        words: NDArray[Any] = keys ^ self._flip
        if self._dtype.is_float:
            if not self._absolute:
                words = words ^ ((words >> self._sign) & self._magnitude)
            words = np.where(keys == self._of_nan, self._infinity() + self.word.type(1), words).astype(self.word)
        elif self._absolute and self._dtype.kind is Kind.INT:
            return np.asarray(words.view(f"uint{8 * self._dtype.itemsize}"))
        return np.asarray(words.view(self._dtype.numpy))

    def _infinity(self) -> Any:
        return self.word.type((2 * self._dtype.max_exponent - 1) << (self._dtype.precision - 1))


class Extremes:
    """The least key of each value, and for argmin and argmax its lowest place."""

    def __init__(self, op: Op, dtypes: Sequence[DType], outputs: int, nan_policy: NanPolicy) -> None:
        from warpfold.kernels.cpu import selecting_rows

        self._op = op
        self._dtype = dtypes[0]
        self._compiled = selecting_rows
        self._keys = Keys(op, self._dtype, omit=nan_policy is NanPolicy.OMIT)
        self._best = np.full(outputs, self._keys.none, self._keys.word)
        self._where = np.full(outputs if op.places else 0, np.iinfo(np.int64).max, np.int64)

    def add(self, start: int, part: GroupedPart) -> None:
        for rows, arrays in GroupedPart((self._keys.of(part.arrays[0]),), part.groups).rows():
            keys = readable(arrays[0], self._keys.word)
            if self._op.places:
                self._compiled.places_in_rows(
                    keys, rows.bounds, rows.outputs, rows.places, rows.step, self._best, self._where
                )
            else:
                self._compiled.least_in_rows(keys, rows.bounds, rows.outputs, self._best)

    def merge(self, other: "Extremes") -> None:
        if self._op.places:
            nearer = (other._best < self._best) | ((other._best == self._best) & (other._where < self._where))
            self._where = np.where(nearer, other._where, self._where)
        self._best = np.minimum(self._best, other._best)

    def values(self, counts: Index) -> list[Value]:
        if self._op.places:
            selected: list[Any] = self._where.tolist()
        elif self._dtype.is_float:
            with np.errstate(invalid="ignore"):
                selected = self._keys.elements(self._best).astype(np.float64).tolist()
        else:
            whole = bool if self._op.result_dtype(self._dtype) == "bool" else int
            selected = [whole(element) for element in self._keys.elements(self._best).tolist()]
        return selected


class Nonzeros:
    """How many elements of each value are not zero."""

    def __init__(self, op: Op, dtypes: Sequence[DType], outputs: int) -> None:
        from warpfold.kernels.cpu import selecting_rows

        self._op = op
        self._dtype = dtypes[0]
        self._compiled = selecting_rows
        self._counts = np.zeros(outputs, np.int64)

    def add(self, start: int, part: GroupedPart) -> None:
        words = readable(part.arrays[0], np.dtype(f"int{8 * self._dtype.itemsize}"))
        if self._dtype.is_float:
            words = words & np.iinfo(words.dtype).max
        marks = (words != 0).view(np.uint8)
        for rows, arrays in GroupedPart((marks,), part.groups).rows():
            flat = readable(arrays[0], np.dtype(np.uint8))
            self._compiled.marks_in_rows(flat, rows.bounds, rows.outputs, self._counts)

    def merge(self, other: "Nonzeros") -> None:
        self._counts += other._counts

    def values(self, counts: Index) -> list[Value]:
        match self._op.name:
            case "any":
                answers: list[Any] = (self._counts > 0).tolist()
            case "all":
                answers = (self._counts == counts).tolist()
            case _:
                answers = self._counts.tolist()
        return answers


class FoldsApart:
    """A fold of the op for each value: slow where values have few elements, and right for every op that has a fold."""

    def __init__(self, op: Op, dtypes: Sequence[DType], outputs: int, nan_policy: NanPolicy) -> None:
        self._folds = [fold_for(op, dtypes[0], nan_policy) for _ in range(outputs)]

    def add(self, start: int, part: GroupedPart) -> None:
        for rows, arrays in part.rows():
            for row, output in enumerate(rows.outputs.tolist()):
                self._folds[output].add(0, arrays[0][rows.bounds[row] : rows.bounds[row + 1]])

    def merge(self, other: "FoldsApart") -> None:
        for mine, theirs in zip(self._folds, other._folds, strict=True):
            mine.merge(theirs)

    def values(self, counts: Index) -> list[Value]:
        return [fold.value() if count else 0 for fold, count in zip(self._folds, counts, strict=True)]
