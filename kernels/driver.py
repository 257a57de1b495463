"""A backend, which answers one call, and what all backends have in common before and after it."""

from abc import ABC, abstractmethod
from functools import partial

from warpfold.kernels.backend import Device, GroupedReduction, Progress, Reduction
from warpfold.kernels.lowering.reducing import lowered
from warpfold.kernels.ops import NanPolicy, op_named
from warpfold.kernels.parts.grouping import Grouping
from warpfold.kernels.parts.keyed import GroupPlan, GroupTable, KeyedSource
from warpfold.kernels.query import Answer, ByKey, Query, Shaped, Whole
from warpfold.kernels.sources.sequential import Elements
from warpfold.kernels.strategy import AUTO


class Backend(ABC):
    """A device ready to reduce. Opening one may take seconds (driver, context, compiled kernels); using it does not."""

    device: Device

    @property
    def spent(self) -> bool:
        """Whether it has opened devices for a job, which only the end of its process gives back in full."""
        return False

    @abstractmethod
    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        """The answer to a query whose elements are values: none of them stands for something else, and no null
        propagates. Raises a KernelError, and what `progress` raises; after a CudaError the process must be replaced.

        InvalidInput names the field of a request that is at fault: "op", "other", "ddof", "strategy", "nan_policy",
        "axis", "segments.offsets.…", "states", "max_groups", or "backend" for what this backend does not compute."""
        ...

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Give back what the backend holds."""

    def reduce(
        self,
        source: Elements,
        op: str,
        *,
        strategy: str = AUTO,
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Elements | None = None,
    ) -> Reduction:
        """Reduce all elements of `source`, whatever they stand for. Raises as `aggregate`."""
        query = Whole(source=source, op=op_named(op), other=other, strategy=strategy, nan_policy=nan_policy, ddof=ddof)
        return lowered(query, partial(self.aggregate, progress=progress))

    def reduce_groups(
        self,
        source: Elements,
        shape: tuple[int, ...],
        grouping: Grouping,
        op: str,
        *,
        strategy: str = AUTO,
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Elements | None = None,
        states: bool = False,
    ) -> GroupedReduction:
        """Reduce the elements of `source`, an array of `shape`, to the values of `grouping`, whatever the elements
        stand for; with `states` give the exact states of all values. Raises as `aggregate`."""
        query = Shaped(
            source=source, op=op_named(op), other=other, strategy=strategy, nan_policy=nan_policy, ddof=ddof,
            shape=shape, grouping=grouping, states=states,
        )  # fmt: skip
        return lowered(query, partial(self.aggregate, progress=progress))

    def group_by(self, source: KeyedSource, plan: GroupPlan, progress: Progress | None = None) -> GroupTable:
        """Reduce the rows of each group, whatever their elements stand for. Raises as `aggregate`."""
        return lowered(ByKey(source, plan), partial(self.aggregate, progress=progress))
