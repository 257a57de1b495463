"""Columns of timestamps, dates and durations: integers of a unit. Their integers are reduced, and stay integers.

A mean or a quantile of them need not be a whole number of units: it is rounded to one, to nearest, ties to even, and
the true fraction stands beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from warpfold.kernels.lowering.iso8601 import UNITS, TimeValue, duration, instant
from warpfold.kernels.lowering.meaning import Meaning, Meant, Total, is_plain
from warpfold.kernels.ops import Extreme, Finish, Op, Terms


@dataclass(frozen=True, slots=True)
class Instants(Meaning):
    """Each element is an instant: so many units after 1970-01-01T00:00, in UTC where there is a time zone. Instants
    have a least, a latest, a mean and a middle one, and no sum: that would depend on the year that is called 0."""

    unit: str
    timezone: str | None = None

    @property
    def name(self) -> str:
        zone = "" if self.timezone is None else f", tz={self.timezone}"
        return "date32[day]" if self.unit == "D" else f"timestamp[{self.unit}{zone}]"

    @property
    def kind(self) -> str:
        return "date" if self.unit == "D" else "timestamp"

    @property
    def instead(self) -> str:
        return "it is defined for means, counts, quantiles, and ops that find an element of instants, or its place"

    def takes(self, op: Op) -> bool:
        counts = op.name == "count"
        return op.finish is Finish.MEAN or op.keeps or counts or (op.extreme is not None and not op.magnitudes)

    def meant(self, op: Op, totals: Sequence[Total], count: int, ddof: int) -> Meant:
        units, exact = _rounded(op, totals[0], count)
        value = TimeValue(instant(units, self.unit, self.timezone), self.unit, self.timezone, exact)
        return Meant(units, self.name, time=value)


@dataclass(frozen=True, slots=True)
class Durations(Meaning):
    """Each element is a duration of so many units. Ops that are sums, means, extremes and quantiles of elements take
    durations, and those that only ask which elements are zero."""

    unit: str

    @property
    def name(self) -> str:
        return f"duration[{self.unit}]"

    @property
    def kind(self) -> str:
        return "duration"

    @property
    def instead(self) -> str:
        return "it is defined for sums, means, extremes, quantiles and counts of durations"

    def takes(self, op: Op) -> bool:
        linear = op.terms is Terms.VALUES and op.finish in (Finish.ITSELF, Finish.MEAN)
        return is_plain(op) or linear or op.selects or op.chooses or op.extreme in (Extreme.LEAST, Extreme.MOST)

    def meant(self, op: Op, totals: Sequence[Total], count: int, ddof: int) -> Meant:
        units, exact = _rounded(op, totals[0], count)
        return Meant(units, self.name, time=TimeValue(duration(units, self.unit), self.unit, None, exact))


def times_of_dtype(dtype: "np.dtype[Any]") -> Meaning | None:
    """The meaning of the integers of NumPy's times; None of other dtypes, and of units that differ in length."""
    if dtype.kind not in "mM":
        return None
    unit, number = np.datetime_data(dtype)
    if unit not in UNITS or number != 1:
        return None
    return Instants(unit) if dtype.kind == "M" else Durations(unit)


def integers_of(dtype: "np.dtype[Any]") -> "np.dtype[Any]":
    """The integers that NumPy's times are stored as, in their byte order; another dtype as it is."""
    return np.dtype(f"{dtype.byteorder}i8") if times_of_dtype(dtype) is not None else dtype


def _rounded(op: Op, total: Total, count: int) -> tuple[int, str | None]:
    """A whole number of units, and the true value where that is not a whole number."""
    true = Fraction(total) / (count if op.finish is Finish.MEAN else 1)
    return round(true), None if true.denominator == 1 else str(true)  # round() of a fraction: ties to even
