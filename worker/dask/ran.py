"""Totals over a job's partitions: how much they read, how long that took, and how much each worker did."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import add

from warpfold.contract.partitions import MOST_WORKERS_SHOWN, PartitionsView, PartitionWorker
from warpfold.kernels.backend import Stages
from warpfold.kernels.formats.dialect import Dialect
from warpfold.worker.dask.task import PartitionDone


@dataclass(frozen=True, slots=True)
class Times:
    """How long a reduction took, in milliseconds and by stages, as a `Reduction` has it."""

    load_ms: float
    kernel_ms: float
    prepare_ms: float
    stages: Stages | None


@dataclass(frozen=True, slots=True)
class Ran:
    """The reduced partitions of a job, in their order, with how many were begun again and how long all took."""

    ordered: Sequence[PartitionDone]
    scheduler: str
    repeated: int
    wall_ms: float

    @property
    def read(self) -> int:
        """How many elements or rows there were."""
        return sum(each.read for each in self.ordered)

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """How the texts are written that were read, each way once."""
        return tuple(dict.fromkeys(dialect for each in self.ordered for dialect in each.dialects))

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return sum(each.nbytes for each in self.ordered)

    def before(self) -> Sequence[int]:
        """How many elements or rows lie before each partition."""
        return [0, *accumulate(each.read for each in self.ordered)]

    def times(self) -> Times:
        """The wall-clock time, divided among the stages in the proportions of the workers' time."""
        ordered = self.ordered
        load_ms, kernel_ms = (sum(getattr(each, name) for each in ordered) for name in ("load_ms", "kernel_ms"))
        stages = [each.stages for each in ordered if each.stages is not None]
        busy = load_ms + kernel_ms
        return Times(
            load_ms=self.wall_ms * load_ms / busy if busy else 0.0,
            kernel_ms=self.wall_ms * kernel_ms / busy if busy else 0.0,
            prepare_ms=max((each.prepare_ms for each in ordered), default=0.0),
            stages=None if len(stages) < len(ordered) else _of_all(stages, len(self._shares())),
        )

    def view(self) -> PartitionsView:
        """How much each worker did."""
        shares = self._shares()
        return PartitionsView(
            scheduler=self.scheduler,
            partitions=len(self.ordered),
            repeated=self.repeated,
            worker_count=len(shares),
            workers=tuple(shares[:MOST_WORKERS_SHOWN]),
        )

    def _shares(self) -> list[PartitionWorker]:
        by: dict[str, list[PartitionDone]] = {}
        for each in self.ordered:
            by.setdefault(each.share.worker, []).append(each)
        shares = [
            PartitionWorker(
                worker=worker,
                host=those[0].share.host,
                backend="cuda" if those[0].share.backend == "cuda" else "cpu",
                device=those[0].share.device,
                partitions=len(those),
                bytes=sum(each.nbytes for each in those),
                busy_s=sum(each.share.busy_s for each in those),
            )
            for worker, those in by.items()
        ]
        return sorted(shares, key=lambda share: (-share.bytes, share.worker))


def _of_all(stages: Sequence[Stages], workers: int) -> Stages:
    """The time of all workers in each stage, divided by their number."""
    whole = reduce(add, stages)
    shared = (
        None if each is None else each / workers
        for each in (whole.read_s, whole.decode_s, whole.copy_s, whole.reduce_s)
    )
    return Stages(*shared)
