"""Meanings of the integers of a source that are not the values themselves: decimals, instants, durations.

Any backend reduces the integers; the value is made of what comes out, element by element or group by group.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Self

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.iso8601 import TimeValue
from warpfold.kernels.ops import Finish, Op, Result, Value


@dataclass(frozen=True, slots=True)
class Meant:
    """A value and the name of its dtype, beside its other forms: decimals in full, and times in words."""

    value: Value
    dtype: str
    decimal: str | None = None
    time: TimeValue | None = None

    @property
    def words(self) -> str | None:
        """The value in full; None of a number that says all."""
        return self.decimal if self.time is None else self.time.iso


class Meaning(ABC):
    """The meaning of an integer of a source. Two sources of equal meanings may be read as one."""

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

    @abstractmethod
    def meant(self, op: Op, integer: int, count: int) -> Meant:
        """The meaning of the `integer` that `integer_op` gave for `count` elements."""

    def within(self, context: Callable[[], AbstractContextManager[object]]) -> Self:
        """The same meaning; elements that it reads itself are read within a context."""
        return self

    def check(self, op: Op) -> None:
        """Raise InvalidInput naming "op" unless `op` has a value of such elements."""
        if op.sources > 1 or not (self.takes(op) or op.places):
            raise InvalidInput(f"{op.name} takes no {self.name} so far; {self.instead}", "op")

    @property
    def instead(self) -> str:
        """The advice of an error where such elements are not taken."""
        return "cast the column to float64 or int64 first"


def integer_op(op: Op) -> str:
    """The op by which integers are reduced for `op` of the values that they stand for. A mean is rounded once, after
    its sum."""
    return "sum" if op.finish is Finish.MEAN else op.name


def is_plain(op: Op) -> bool:
    """Whether values of `op` mean what they are, whatever its elements stand for: indices, counts and truth values."""
    return op.result in (Result.INDEX, Result.TRUTH)
