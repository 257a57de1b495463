"""Ops that select an element: min, max and norm_inf by value, argmin and argmax by index."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import is_nan, refuse_nan, widened
from warpfold.kernels.cpu.folds.fold import StartFold
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Extreme, NanPolicy, Op, Value


class ExtremumFold:
    """The smallest and largest element, as minimum and maximum of IEEE 754-2019, 9.6: NaN if one is NaN; −0 < +0."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0) -> None:
        self._op = op
        self._dtype = dtype
        self._omit = dtype.is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtype.is_float and nan_policy is NanPolicy.RAISE
        self._least: float | int | None = None
        self._most: float | int | None = None
        self.count = 0

    def add(self, start: int, part: NDArray[Any]) -> None:
        if self._refuse:
            refuse_nan(start, part, self._dtype)
        elif self._omit:
            part = part[~is_nan(part, self._dtype)]
        if not part.size:
            return
        self.count += part.size
        values = widened(part, self._dtype)
        if self._op.magnitudes or self._op.extreme is Extreme.LEAST:
            self._least = smaller(self._least, _least(values))
        if self._op.magnitudes or self._op.extreme is Extreme.MOST:
            self._most = larger(self._most, _most(values))

    def merge(self, other: "ExtremumFold") -> None:
        self.count += other.count
        self._least = smaller(self._least, other._least)
        self._most = larger(self._most, other._most)

    def value(self) -> Value:
        extremes = [value for value in (self._least, self._most) if value is not None]
        assert extremes, f"{self._op.name} of no elements"
        if self._op.magnitudes:
            least, most = extremes
            return math.nan if math.isnan(least) else max(abs(least), abs(most))
        return extremes[0]

    def state(self) -> None:
        return None


class PlaceFold:
    """The index of the smallest or largest element: the lowest index of equal ones (−0 equals +0), and that of the
    first NaN if any element is NaN."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0) -> None:
        assert op.places
        self._sign = 1 if op.extreme is Extreme.LEAST else -1
        self._dtype = dtype
        self._omit = dtype.is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtype.is_float and nan_policy is NanPolicy.RAISE
        self._best: tuple[bool, float, int] | None = None  # the key sorts NaN first, then by value, then by index
        self.count = 0

    def add(self, start: int, part: NDArray[Any]) -> None:
        kept = None
        if self._refuse:
            refuse_nan(start, part, self._dtype)
        elif self._omit:
            missing = is_nan(part, self._dtype)
            if missing.any():
                kept = np.flatnonzero(~missing)
                part = part[kept]
        if not part.size:
            return
        self.count += part.size
        values = widened(part, self._dtype)
        at = int(values.argmin() if self._sign > 0 else values.argmax())
        index = start + (at if kept is None else int(kept[at]))
        number = values[at].item()
        nan = math.isnan(number)
        self._take((not nan, 0 if nan else self._sign * number, index))

    def _take(self, candidate: tuple[bool, float, int]) -> None:
        if self._best is None or candidate < self._best:
            self._best = candidate

    def merge(self, other: "PlaceFold") -> None:
        self.count += other.count
        if other._best is not None:
            self._take(other._best)

    def value(self) -> int:
        assert self._best is not None, "the index of no elements"
        return self._best[2]

    def state(self) -> None:
        return None


def _least(values: NDArray[Any]) -> float | int:
    """The minimum of `values`, at least one, as a Python number."""
    least = values.min()
    if values.dtype.kind == "f" and least == 0 and np.signbit(values[values == 0]).any():
        return -0.0
    number: float | int = least.item()
    return number


def _most(values: NDArray[Any]) -> float | int:
    """The maximum of `values`, at least one, as a Python number."""
    most = values.max()
    if values.dtype.kind == "f" and most == 0 and not np.signbit(values[values == 0]).all():
        return 0.0
    number: float | int = most.item()
    return number


def smaller(a: float | None, b: float | None) -> float | None:
    """The smaller of two elements; None stands for no element."""
    if a is None or b is None:
        return b if a is None else a
    return math.nan if math.isnan(a) or math.isnan(b) else min(a, b, key=_order)


def larger(a: float | None, b: float | None) -> float | None:
    """The larger of two elements; None stands for no element."""
    if a is None or b is None:
        return b if a is None else a
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b, key=_order)


def _order(value: float) -> tuple[float, float]:
    """Sorts by value, −0 before +0."""
    return value, math.copysign(1.0, value)


FOLDS: Mapping[str, StartFold] = MappingProxyType({"extremum": ExtremumFold, "place": PlaceFold})
"""The folds of one source, by the names that rows of `kernels/ops.py` give."""
