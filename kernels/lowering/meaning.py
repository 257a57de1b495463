"""Meanings of the stored numbers of a source that are not the values themselves: decimals, instants, durations, packed
numbers.

Any backend reduces the stored numbers; the value is made of what comes out, element by element or group by group.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.iso8601 import TimeValue
from warpfold.kernels.ops import Finish, Op, Result, Value, op_named
from warpfold.kernels.ops.quantiles import between

Total = int | Fraction | float
"""What a reduction of stored numbers gave, exactly: an integer, or a fraction of floats; a float is NaN or infinite."""


@dataclass(frozen=True, slots=True)
class Meant:
    """A value and the name of its dtype, beside its other forms: decimals in full, what may have no end as a fraction,
    and times in words."""

    value: Value
    dtype: str
    decimal: str | None = None
    time: TimeValue | None = None
    fraction: Fraction | None = None

    @property
    def words(self) -> str | None:
        """The value in full; None of a number that says all."""
        return self.decimal if self.time is None else self.time.iso


class Meaning(ABC):
    """The meaning of a stored number of a source. Two sources of equal meanings may be read as one."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The elements, as a result or an error names them."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind of such elements in a word, as an inspection of a file shows it."""

    @abstractmethod
    def takes(self, op: Op) -> bool:
        """Whether `op` has a value of such elements."""

    @property
    def numbers_alone(self) -> bool:
        """Whether values are floats that say all, so that an array of them does."""
        return False

    def stored_ops(self, op: Op) -> tuple[Op, ...]:
        """The ops by which the stored numbers are reduced for `op` of the values that they stand for. A mean is rounded
        once, after its sum, and a quantile after its neighbours."""
        if op.selects:
            return op.neighbours()
        return (op_named("sum") if op.finish is Finish.MEAN else op,)

    @abstractmethod
    def meant(self, op: Op, totals: Sequence[Total], count: int, ddof: int) -> Meant:
        """The value of `op` of `count` elements whose `stored_ops` have these totals; `ddof` is for var and std."""

    def within(self, context: Callable[[], AbstractContextManager[object]]) -> Self:
        """The same meaning; elements that it reads itself are read within a context."""
        return self

    def check(self, op: Op) -> None:
        """Raise InvalidInput naming "op" unless `op` has a value of such elements."""
        compares = op.parameters.bin_count is not None  # with edges, which are no stored numbers
        if op.sources > 1 or compares or not (self.takes(op) or op.places):
            raise InvalidInput(f"{op.name} takes no {self.name} so far; {self.instead}", "op")

    @property
    def instead(self) -> str:
        """The advice of an error where such elements are not taken."""
        return "cast the column to float64 or int64 first"


def joined(op: Op, totals: Sequence[Total], count: int) -> Sequence[Total]:
    """The totals of `op` of `count` elements: of the neighbours of a quantile, what lies between them."""
    if not op.selects or len(totals) < 2:
        return totals
    (low, high), weight = totals, between(str(op.parameters.method), op.parameters.each_q[0], max(1, count)).weight
    if not weight:
        return (low,)
    special = [total for total in totals if isinstance(total, float)]
    return (sum(special),) if special else ((1 - weight) * Fraction(low) + weight * Fraction(high),)


def is_plain(op: Op) -> bool:
    """Whether values of `op` mean what they are, whatever its elements stand for: indices, counts and truth values."""
    return op.result in (Result.INDEX, Result.TRUTH)
