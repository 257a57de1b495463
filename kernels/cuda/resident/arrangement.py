"""How arrays without gaps lie in memory, and which of their elements make which value."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class Members:
    """Where the elements of `values` values lie: value v has `count`, from v · `outer` on, `stride` apart."""

    outer: int
    stride: int
    count: int
    values: int


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How an array without gaps lies in memory, and what of it makes a value.

    `kept` are the axes that are kept, from the slowest to the fastest, and `lengths` their lengths; `count` elements
    make a value. In `runs` neighbours that are both reduced or both kept are one, and axes of one element are left out;
    `reduced` says whether the first run is reduced, and the others take turns.
    """

    kept: tuple[int, ...]
    lengths: tuple[int, ...]
    count: int
    runs: tuple[int, ...]
    reduced: bool

    @classmethod
    def of(cls, shape: Sequence[int], strides: Sequence[int], axes: frozenset[int]) -> "Arrangement | None":
        """The arrangement of an array with these strides, in elements; None where the array has gaps, repeats elements,
        or reduces axes between others that are kept."""
        order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
        expected = 1
        for axis in reversed(order):
            if shape[axis] > 1:
                if strides[axis] != expected:
                    return None
                expected *= shape[axis]
        runs: list[tuple[int, bool]] = []
        for axis in order:
            reduced = axis in axes
            if shape[axis] == 1:
                continue
            if runs and runs[-1][1] == reduced:
                runs[-1] = (runs[-1][0] * shape[axis], reduced)
            else:
                runs.append((shape[axis], reduced))
        if len(runs) > 2:
            return None
        kept = tuple(axis for axis in order if axis not in axes)
        lengths = tuple(shape[axis] for axis in kept)
        count = prod(shape[axis] for axis in axes)
        return cls(kept, lengths, count, tuple(length for length, _ in runs), bool(runs) and runs[0][1])

    @classmethod
    def rows(cls, shape: Sequence[int], axes: frozenset[int]) -> "Arrangement":
        """The arrangement of a copy of an array of `shape` whose reduced axes were moved behind the others."""
        kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
        lengths = tuple(shape[axis] for axis in kept)
        count = prod(shape[axis] for axis in axes)
        return cls(kept, lengths, count, (prod(lengths), count), False)

    def members(self) -> Members:
        """Where the elements of the values lie."""
        match self.runs:
            case (height, width) if self.reduced:
                return Members(1, width, height, width)
            case (values, count):
                return Members(count, 1, count, values)
            case (count,) if self.reduced:
                return Members(count, 1, count, 1)
        return Members(1, 1, 1, prod(self.lengths))

    @property
    def order(self) -> tuple[int, ...]:
        """The places of the kept axes in their own order: a transposition of the values."""
        return tuple(sorted(range(len(self.kept)), key=self.kept.__getitem__))
