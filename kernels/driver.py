"""A backend, which answers one call, and what all backends have in common before and after it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import prod
from typing import cast

from warpfold.kernels.backend import Device, GroupedReduction, Progress, Reduction
from warpfold.kernels.catalog import WINDOWS
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.keyed_totals import group_by_totals
from warpfold.kernels.lowering.reducing import exact_total, lowered
from warpfold.kernels.lowering.totals import made_of_totals, of_totals
from warpfold.kernels.ops import Finish, NanPolicy, Op, op_named
from warpfold.kernels.ops.weights import Weighting
from warpfold.kernels.parts.blocks import blocks, by_position, most_of_block
from warpfold.kernels.parts.keyed import GroupPlan, GroupTable, KeyedSource
from warpfold.kernels.parts.rolling import Layout, Rolling
from warpfold.kernels.query import Answer, ByKey, Moving, Query, Shaped, Whole
from warpfold.kernels.sources.sequential import Elements
from warpfold.kernels.strategy import AUTO


class Backend(ABC):
    """A device ready to reduce. Opening one may take seconds (driver, context, compiled kernels); using it does not."""

    device: Device

    @property
    def has_windows(self) -> bool:
        """Whether it takes windows that move along an array."""
        return self.device.backend == "cpu"

    @abstractmethod
    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        """The answer to a query whose elements are values: none of them stands for something else, no null propagates,
        and no op is made of several totals. Raises a KernelError, and what `progress` raises; after a CudaError the
        process must be replaced.

        InvalidInput names the field of a request that is at fault: "op", "other", "ddof", "strategy", "nan_policy",
        "axis", "segments.offsets.…", "states", "max_groups", or "backend" for what this backend does not compute."""
        ...

    def answer(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        """The answer to a query, whatever its elements stand for. Raises as `aggregate`."""
        return lowered(query, partial(self._of_values, progress=progress))

    def _of_values(self, query: Query[Answer], progress: Progress | None) -> Answer:
        """The answer to a query whose elements are values. An op of several totals is made of the answers to others."""
        if isinstance(query, Moving) and not self.has_windows:
            raise InvalidInput(f"{WINDOWS} need the backend cpu, cuda or auto", "backend")
        if isinstance(query, ByKey):
            return cast(Answer, group_by_totals(query, self.aggregate, progress))
        if isinstance(query, Whole | Shaped) and made_of_totals(query):
            return cast(Answer, of_totals(query, self.aggregate, progress))
        return self.aggregate(query, progress)

    def job_over(self) -> None:  # noqa: B027 - most have their device to themselves
        """Give back the memory that a job has left on devices that other slots use, too."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Give back what the backend holds."""

    def reduce(
        self,
        source: Elements,
        op: str | Op,
        *,
        strategy: str = AUTO,
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Elements | None = None,
        weights: Elements | None = None,
        weighting: Weighting = Weighting.FREQUENCY,
    ) -> Reduction:
        """Reduce all elements of `source`. Raises as `aggregate`, and InvalidInput naming "q" for a list of values."""
        row = op_named(op)
        if row.listed is not None:
            raise InvalidInput(
                f"{row.name} has several values: reduce along all axes to an array", "q" if row.selects else "op"
            )
        query = Whole(
            source=source, op=row, other=other, strategy=strategy, nan_policy=nan_policy, ddof=ddof,
            weights=weights, weighting=weighting,
        )  # fmt: skip
        answer = self.answer(query, progress)
        if row.finish is Finish.MEAN and answer.state is not None and weights is None and not source.dtype.is_float:
            total = Fraction(exact_total(row, answer.value, answer.state))
            return replace(answer, fraction=total / answer.count)
        return answer

    def reduce_groups(
        self,
        source: Elements,
        shape: tuple[int, ...],
        grouping: Layout,
        op: str | Op,
        *,
        strategy: str = AUTO,
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Elements | None = None,
        states: bool = False,
        fractions: bool = False,
        weights: Elements | None = None,
        weighting: Weighting = Weighting.FREQUENCY,
        over: Elements | None = None,
        keys: Elements | None = None,
    ) -> GroupedReduction:
        """Reduce the elements of `source`, an array of `shape`, to the values of `grouping`; with `states` give the
        exact states of all values, and with `fractions` the means of integers exactly. Windows may have times `over`
        and `keys`. Raises as `aggregate`."""
        if isinstance(grouping, Rolling):
            moving = Moving(
                source=source, op=op_named(op), other=other, strategy=strategy, nan_policy=nan_policy, ddof=ddof,
                shape=shape, grouping=grouping, weights=weights, weighting=weighting, over=over, keys=keys,
            )  # fmt: skip
            return self.answer(moving, progress)
        query = Shaped(
            source=source, op=op_named(op), other=other, strategy=strategy, nan_policy=nan_policy, ddof=ddof,
            shape=shape, grouping=grouping, states=states, fractions=fractions, weights=weights, weighting=weighting,
        )  # fmt: skip
        return self.answer(query, progress)

    def group_by(self, source: KeyedSource, plan: GroupPlan, progress: Progress | None = None) -> GroupTable:
        """Reduce the rows of each group; all rows are one where they have no keys. Raises as `aggregate`."""
        if source.key_names:
            return self.answer(ByKey(source, plan), progress)
        return replace(self.answer(ByKey(source.in_one_group(), plan), progress), key_names=(), keys=())

    def in_blocks(self, query: Shaped | Moving, progress: Progress | None = None) -> Iterator[GroupedReduction]:
        """The answer to `query` in blocks of neighbouring values, in their order. So what it needs in memory is
        bounded, however many values there are. All values of windows come at once. Raises as `aggregate`."""
        if isinstance(query, Moving):
            yield self.answer(query, progress)
            return
        on_cpu, total, done = self.device.backend == "cpu", prod(query.shape), 0
        most = most_of_block(on_cpu=on_cpu, states=query.states or made_of_totals(query))
        values = prod(query.grouping.result_shape(query.shape))
        sources = [by_position(source, values, most) for source in query.sources]
        for block in blocks(sources, query.shape, query.grouping, most, strips=on_cpu):
            asked = replace(query.of(block.sources), shape=block.shape)
            try:
                part = self.answer(replace(asked, grouping=block.grouping), _behind(progress, done, total))
            except InvalidInput as error:
                if error.field == "nan_policy" and block.shape != query.shape:  # the block counts its elements from 0
                    raise InvalidInput("an element is NaN, and nan_policy is raise", "nan_policy") from None
                raise
            yield part
            done += prod(block.shape)


def _behind(progress: Progress | None, done: int, total: int) -> Progress | None:
    """What reports the progress of a part behind `done` of `total` elements."""
    return None if progress is None else lambda now, _: progress(done + now, total)
