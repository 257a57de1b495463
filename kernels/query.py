"""What a backend is asked for: what the elements of each group come to, in one of four layouts. All elements are one
group (`Whole`), an array has a group for each index of some axes or for each segment (`Shaped`) or a window for each
element (`Moving`), and rows have keys (`ByKey`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Generic, Self, TypeVar

from warpfold.kernels.backend import GroupedReduction, Reduction
from warpfold.kernels.ops import NanPolicy, Op
from warpfold.kernels.ops.weights import Weighting
from warpfold.kernels.parts.grouping import Grouping
from warpfold.kernels.parts.keyed import GroupPlan, GroupTable, KeyedSource
from warpfold.kernels.parts.rolling import Rolling
from warpfold.kernels.sources.sequential import Elements
from warpfold.kernels.strategy import AUTO

Answer = TypeVar("Answer")


class Query(Generic[Answer]):
    """A question to a backend, to which the answer is an `Answer`."""


@dataclass(frozen=True, kw_only=True)
class OfElements(Query[Answer]):
    """The value of `op` of the elements of `source`, or of pairs of them and those of `other`: an op of two sources
    (dot) needs it, and no other op takes it. It has as many elements, and is of floats beside floats and of integers
    beside integers. `ddof` is for var and std.

    The value may be that of elements with `weights`, one for each, of which `weighting` says what they mean: those that
    `kernels.ops.weights` knows take them."""

    source: Elements
    op: Op
    other: Elements | None = None
    strategy: str = AUTO
    nan_policy: NanPolicy = NanPolicy.PROPAGATE
    ddof: int = 0
    weights: Elements | None = None
    weighting: Weighting = Weighting.FREQUENCY

    @property
    def fields(self) -> Mapping[str, Elements]:
        """The sources, by the fields that have them."""
        named = (("source", self.source), ("other", self.other), ("weights", self.weights))
        return {field: source for field, source in named if source is not None}

    @property
    def sources(self) -> tuple[Elements, ...]:
        """The sources in this order."""
        return tuple(self.fields.values())

    def of(self, sources: Sequence[Elements]) -> Self:
        """The same query of other sources, in the order of `sources`."""
        return replace(self, **dict(zip(self.fields, sources, strict=True)))  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Whole(OfElements[Reduction]):
    """One value of all elements, which are read once where they come in order."""


@dataclass(frozen=True, kw_only=True)
class Shaped(OfElements[GroupedReduction]):
    """The values of `grouping`: the elements are an array of `shape` in C order. With `states` the exact states of all
    values are given, too, and with `fractions` the means of integers exactly."""

    shape: tuple[int, ...]
    grouping: Grouping
    states: bool = False
    fractions: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all elements are one group, and the source is known to have as many as the shape."""
        alone = prod(self.grouping.result_shape(self.shape)) == 1
        return alone and 0 < self.grouping.counts(self.shape)[0] == prod(self.shape) == self.source.count


@dataclass(frozen=True, kw_only=True)
class Moving(OfElements[GroupedReduction]):
    """A value for each element of an array of `shape`: that of the window which `grouping` has there. A window of some
    width has the times of elements `over`, and one with `keys` stays among elements with an equal key. `second` is how
    many units of the times a second has, None where they are numbers."""

    shape: tuple[int, ...]
    grouping: Rolling
    over: Elements | None = None
    keys: Elements | None = None
    second: Fraction | None = None


@dataclass(frozen=True)
class ByKey(Query[GroupTable]):
    """The values of the rows of each group, as `plan` says."""

    source: KeyedSource
    plan: GroupPlan
