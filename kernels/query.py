"""What a backend is asked for: what the elements of each group come to, in one of three layouts. All elements are one
group (`Whole`), an array has a group for each index of some axes or for each segment (`Shaped`), and rows have keys
(`ByKey`)."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from warpfold.kernels.backend import GroupedReduction, Reduction
from warpfold.kernels.ops import NanPolicy, Op
from warpfold.kernels.parts.grouping import Grouping
from warpfold.kernels.parts.keyed import GroupPlan, GroupTable, KeyedSource
from warpfold.kernels.sources.sequential import Elements
from warpfold.kernels.strategy import AUTO

Answer = TypeVar("Answer")


class Query(Generic[Answer]):
    """A question to a backend, to which the answer is an `Answer`."""


@dataclass(frozen=True, kw_only=True)
class OfElements(Query[Answer]):
    """The value of `op` of the elements of `source`, or of pairs of them and those of `other`: an op of two sources
    (dot) needs it, and no other op takes it. It has as many elements, and is of floats beside floats and of integers
    beside integers. `ddof` is for var and std."""

    source: Elements
    op: Op
    other: Elements | None = None
    strategy: str = AUTO
    nan_policy: NanPolicy = NanPolicy.PROPAGATE
    ddof: int = 0

    @property
    def sources(self) -> tuple[Elements, ...]:
        """The one or two sources."""
        return (self.source,) if self.other is None else (self.source, self.other)


@dataclass(frozen=True, kw_only=True)
class Whole(OfElements[Reduction]):
    """One value of all elements, which are read once where they come in order."""


@dataclass(frozen=True, kw_only=True)
class Shaped(OfElements[GroupedReduction]):
    """The values of `grouping`: the elements are an array of `shape` in C order. With `states` the exact states of all
    values are given, too."""

    shape: tuple[int, ...]
    grouping: Grouping
    states: bool = False


@dataclass(frozen=True)
class ByKey(Query[GroupTable]):
    """The values of the rows of each group, as `plan` says."""

    source: KeyedSource
    plan: GroupPlan
