"""Durations and instants within flox: their integers are added, a NaT is what a NaN is among floats, and values are
whole numbers of the unit."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flox.aggregations import Aggregation
from numpy.typing import NDArray

from warpfold.engines.flox_parts import count_of, state, with_nan
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN, Flags
from warpfold.kernels.lowering.times import times_of_dtype
from warpfold.kernels.ops import Finish, Op, Terms

_NAT = -(1 << 63)
"""The integer of a NaT."""


class TimesAsTheyAre(Aggregation):
    """An aggregation that gets times as they are. flox hands the integers of times to all others, which cannot know
    them, except to those that are equal to "count", "any" or "all"."""

    def __eq__(self, other: object) -> bool:
        return other == "any" or self is other

    __hash__ = Aggregation.__hash__


def are_times(dtype: "np.dtype[Any]") -> bool:
    """Whether elements are durations or instants."""
    return dtype.kind in "mM"


def integers_of_times(rows: NDArray[Any], op: Op) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The integers, 0 for a NaT, and which elements are NaTs. Raises InvalidInput where `op` has no value of such
    times, or their unit has no one length."""
    meaning = times_of_dtype(rows.dtype)
    if meaning is None:
        raise InvalidInput(
            f"{op.name} takes no {rows.dtype}: convert it to days, hours, minutes, seconds or parts of these"
        )
    if not meaning.takes(op):
        raise InvalidInput(f"{op.name} takes no {rows.dtype}; {meaning.instead}", "op")
    missing = np.isnat(rows)
    integers = rows.astype(rows.dtype.newbyteorder("="), copy=False).view(np.int64)
    return np.where(missing, 0, integers), missing


def mark_nats(made: NDArray[Any], numbers: NDArray[Any], missing: NDArray[np.bool_]) -> None:
    """Flag the parts of those rows and groups that have a NaT. The element in column i belongs to group numbers[i]."""
    rows, columns = np.nonzero(missing & (numbers >= 0))
    if made.dtype == object:
        for at in set(zip(rows.tolist(), numbers[columns].tolist(), strict=True)):
            made[at] = with_nan(made[at])
    else:
        made["flags"][rows, numbers[columns]] |= int(Flags.NAN)


def values_of_times(parts: Sequence[int], op: Op) -> list[int]:
    """The integers of the values: of a sum as it is, of a mean rounded, ties to even; of a NaT that of a NaT. A sum of
    no elements is 0, and a mean of none NaT. Raises InvalidInput for a sum that 64 bits do not hold."""
    return [_value(part, op) for part in parts]


def _value(part: int, op: Op) -> int:
    mean = op.finish is Finish.MEAN
    if not part:
        return _NAT if mean else 0
    whole = state(part, Terms.VALUES)
    if whole.flags & Flags.NAN:
        return _NAT
    units = whole.units >> -ORIGIN[Terms.VALUES]
    value = round(Fraction(units, count_of(part))) if mean else units
    if abs(value) >> 63:
        raise InvalidInput(f"the sum {value} does not fit a duration")
    return value
