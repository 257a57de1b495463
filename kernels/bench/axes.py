"""The axes of a benchmark: it runs the product of a few lists of names and sizes, which is bounded."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.studies.shapes import CaseShape

MAX_CASES = 1000


class Cache(StrEnum):
    """The state of the caches when a timed run starts."""

    COLD = "cold"  # nothing of the data: flushed before every run
    HOT = "hot"  # whatever the run before left there


def check_axis(name: str, values: Sequence[object], *, may_be_empty: bool = False) -> None:
    """Raise InvalidInput naming the axis if it repeats a value, or has none where it must not be empty."""
    if not values and not may_be_empty:
        raise InvalidInput("an axis needs at least one value", name)
    if len(set(values)) < len(values):
        raise InvalidInput("an axis lists each value once", name)


def check_axes(axes: Mapping[str, Sequence[object]], most: int) -> None:
    """`check_axis` for each by name; raise InvalidInput naming the longest if they have over `most` combinations."""
    for name, values in axes.items():
        check_axis(name, values)
    product = math.prod(map(len, axes.values()))
    if product > most:
        longest = max(axes, key=lambda name: len(axes[name]))
        raise InvalidInput(f"{' × '.join(axes)} make {product:,} combinations; the most is {most:,}", longest)


@dataclass(frozen=True, slots=True)
class Case:
    """One combination: `strategy` reduces `n` elements of `dtype` by `op`, to one value or to those of `shape`."""

    strategy: str
    op: str
    dtype: str
    n: int
    cache: Cache
    shape: CaseShape | None = None


@dataclass(frozen=True, slots=True)
class Axes:
    """The values of each axis, in the order wanted. A size is a number of elements, or a shape.

    Raises InvalidInput naming the axis that is empty or repeats a value, or the longest one when there are more than
    MAX_CASES combinations.
    """

    strategies: tuple[str, ...]
    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    sizes: tuple[int | CaseShape, ...]
    caches: tuple[Cache, ...] = (Cache.COLD, Cache.HOT)

    def __post_init__(self) -> None:
        check_axes({axis.name: getattr(self, axis.name) for axis in fields(self)}, MAX_CASES)

    def __len__(self) -> int:
        return math.prod(len(getattr(self, axis.name)) for axis in fields(self))

    def counts(self) -> tuple[int, ...]:
        """The numbers of elements of the sizes."""
        return tuple(size.n if isinstance(size, CaseShape) else size for size in self.sizes)

    def cases(self) -> Iterator[Case]:
        """Every case once. Those on the same data follow each other, the strategies to be compared most closely."""
        for dtype in self.dtypes:
            for size in self.sizes:
                n, shape = (size.n, size) if isinstance(size, CaseShape) else (size, None)
                for op in self.ops:
                    for cache in self.caches:
                        for strategy in self.strategies:
                            yield Case(strategy, op, dtype, n, cache, shape)
