"""A reduction on a Dask cluster: its partitions are handed to the workers, and what they give is combined.

The child of the slot keeps the partial value of every partition that has ended. Where a worker, or the whole cluster,
is lost, only what it had in hand is done again.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from queue import Empty, SimpleQueue
from typing import Any

from distributed import KilledWorker

from warpfold.contract.folders import Folders
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.partitions import MOST_WORKERS_SHOWN, PartitionsView, PartitionWorker
from warpfold.kernels.backend import Reduction, Stages
from warpfold.kernels.errors import CudaError, InvalidInput, KernelError, OutOfMemory, RankLost, Unavailable
from warpfold.kernels.ops import Value, op_named
from warpfold.kernels.partitions import PartialValue, added
from warpfold.kernels.places.place import ObjectFacts
from warpfold.worker.dask.cluster import Cluster
from warpfold.worker.dask.cutting import cut
from warpfold.worker.dask.task import Partition, PartitionDone, PartitionFailed, PartitionTask, own_version

Report = Callable[[int, int], None]
"""Called with the bytes that are done, and those in all."""

_AHEAD = 4
"""So many partitions for each thread of the cluster are at the scheduler: enough that no worker waits for the slot."""

_GATHER_S = 0.02

_LOOK_EVERY_S = 1.0
"""How often a cluster that gives nothing is asked for its workers."""

_REASONS: dict[str, Callable[[str], KernelError]] = {
    Unavailable.reason: Unavailable,
    OutOfMemory.reason: OutOfMemory,
    CudaError.reason: CudaError,
}


@dataclass(frozen=True, slots=True)
class Spread:
    """A reduction that a cluster has done, what was left out and read, and who did how much."""

    reduction: Reduction
    dtype: str
    nulls: int
    read: int
    nbytes: int
    objects: tuple[ObjectFacts, ...]
    workers: PartitionsView


def reduce_on(cluster: Cluster, spec: ReduceSpec, folders: Folders, report: Report) -> Spread:
    """Reduce the elements of `spec` on the workers of `cluster`. Raises a KernelError; one of a partition names it."""
    began = time.perf_counter()
    cluster.check_versions()
    partitions = cut(spec, folders, len(cluster.workers()))
    run = _Run(cluster, spec, cluster.sendable(folders), partitions, report)
    try:
        run.finish()
    finally:
        run.withdraw()
    return run.spread((time.perf_counter() - began) * 1e3)


@dataclass
class _Run:
    """The partitions of one job: those to be handed out, those at the cluster, and those that are done."""

    cluster: Cluster
    spec: ReduceSpec
    folders: Folders
    partitions: Sequence[Partition]
    report: Report
    done: dict[int, PartitionDone] = field(default_factory=dict)
    _todo: deque[int] = field(default_factory=deque)
    _at: dict[str, tuple[int, Any]] = field(default_factory=dict)
    _ended: "SimpleQueue[Any]" = field(default_factory=SimpleQueue)
    _threads: int = 1
    _done_bytes: int = 0
    _empty_since: float | None = None
    _look_at: float = 0.0
    _keys: set[str] = field(default_factory=set)
    _repeated: int = 0
    _lost_workers: "SimpleQueue[Sequence[str]]" = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        self._todo.extend(range(len(self.partitions)))
        self._total = sum(part.nbytes for part in self.partitions)

    def finish(self) -> None:
        """Have all partitions reduced. Raises a KernelError."""
        self._look()
        self.cluster.on_lost(self._lost_workers.put)
        while len(self.done) < len(self.partitions):
            self._hand_out()
            if ended := self._wait():
                self._take(ended)
                self.report(self._done_bytes, max(self._total, self._done_bytes))
            elif time.monotonic() >= self._look_at:
                self._look()

    def withdraw(self) -> None:
        """Have the cluster forget what it has in hand."""
        self.cluster.forget([future for _, future in self._at.values()])

    def _hand_out(self) -> None:
        most = max(_AHEAD * self._threads, 16)
        room = most - len(self._at)
        if room < most // 2 or not self._todo or not self.cluster.is_connected:
            return  # many at a time cost less than one by one
        numbers = [self._todo.popleft() for _ in range(min(room, len(self._todo)))]
        tasks = [PartitionTask(own_version(), self.spec, self.partitions[at], self.folders) for at in numbers]
        futures = self.cluster.hand_out(tasks, self._ended.put)
        for number, future in zip(numbers, futures, strict=True):
            self._at[future.key] = (number, future)
            self._keys.add(future.key)

    def _wait(self) -> list[Any]:
        """What has ended, soon after the first of them, or nothing after a tenth of a second."""
        ended: list[Any] = []
        try:
            ended.append(self._ended.get(timeout=0.1))
            if self._todo:  # gathering several states takes as long as gathering one
                time.sleep(_GATHER_S)
            while True:
                ended.append(self._ended.get_nowait())
        except Empty:
            return ended

    def _take(self, ended: Sequence[Any]) -> None:
        whole = [future for future in ended if future.key in self._at and future.status == "finished"]
        for future in ended:
            if future.key in self._at and future.status != "finished":
                self._lost(future)
        for key, result in self.cluster.gathered({future.key: future for future in whole}).items():
            number, future = self._at[key]
            if result is None:
                self._once_more(future)
                continue
            del self._at[key]
            if isinstance(result, PartitionFailed):
                raise self._failure(result)
            self.done[number] = result
            self._done_bytes += result.nbytes

    def _lost(self, future: Any) -> None:
        """A future that gave no result: its worker died again and again, the scheduler was lost, or the task failed."""
        number, _ = self._at[future.key]
        if future.status != "error":
            self._once_more(future)
            return
        error = future.exception()
        part = self._called(number)
        if isinstance(error, KilledWorker):
            raise RankLost(f"{part}: each of the Dask workers that tried it died")
        if isinstance(error, KernelError):
            raise type(error)(f"{part}: {error}")
        assert error is not None
        raise error

    def _once_more(self, future: Any) -> None:
        number, _ = self._at.pop(future.key)
        self._todo.appendleft(number)
        self._repeated += 1

    def _count_repeated(self) -> int:
        """How many partitions were handed out again: by Dask, as a worker was lost, or by this process."""
        while not self._lost_workers.empty():
            self._repeated += len(self._keys.intersection(self._lost_workers.get()))
        return self._repeated

    def _failure(self, failed: PartitionFailed) -> KernelError:
        error = f"{self._called(failed.number)}: {failed.error}"
        if failed.reason == CudaError.reason:
            self.cluster.restart(failed.worker)
        if failed.reason in _REASONS:
            return _REASONS[failed.reason](error)
        return InvalidInput(error, failed.field)

    def _called(self, number: int) -> str:
        return f"partition {number + 1} of {len(self.partitions)} ({self.partitions[number].name})"

    def _look(self) -> None:
        """Ask for the workers. Raises Unavailable where there were none for too long."""
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        try:
            threads = self.cluster.workers()
            why = f"the Dask cluster at {self.cluster.address} has had no worker"
        except Unavailable as error:
            threads, why = {}, f"{error}"
        for _, future in list(self._at.values()):
            if future.status in ("cancelled", "lost"):  # the scheduler was away
                self._once_more(future)
        if threads:
            self._threads, self._empty_since = sum(threads.values()), None
            return
        self._empty_since = self._empty_since or time.monotonic()
        if time.monotonic() - self._empty_since >= self.cluster.options.wait_s:
            raise Unavailable(
                f"{why} for {self.cluster.options.wait_s:g} s; {len(self.done)} of {len(self.partitions)} partitions "
                "were done"
            )

    def spread(self, wall_ms: float) -> Spread:
        """The reduction of all partitions, which took so long."""
        ordered = [self.done[number] for number in range(len(self.partitions))]
        partial = in_pairs([each.reduced.partial for each in ordered])
        before = [0, *accumulate(each.reduced.partial.read for each in ordered)]
        value: Value = partial.finish(self.spec.ddof, before)
        shares = self._shares(ordered)
        load_ms, kernel_ms = (sum(getattr(each.reduced, name) for each in ordered) for name in ("load_ms", "kernel_ms"))
        stages = [each.reduced.stages for each in ordered if each.reduced.stages is not None]
        busy = load_ms + kernel_ms
        reduction = Reduction(
            value=value,
            dtype=partial.result,
            count=partial.count,
            op=self.spec.op,
            strategy="exact" if op_named(self.spec.op).adds else ordered[0].reduced.strategy,
            correctly_rounded=True,
            load_ms=wall_ms * load_ms / busy if busy else 0.0,
            kernel_ms=wall_ms * kernel_ms / busy if busy else 0.0,
            state=partial.states[0] if len(partial.states) == 1 else None,
            prepare_ms=max((each.reduced.prepare_ms for each in ordered), default=0.0),
            stages=None if len(stages) < len(ordered) else _of_all(stages, len(shares)),
        )
        view = PartitionsView(
            scheduler=self.cluster.address,
            partitions=len(self.partitions),
            repeated=self._count_repeated(),
            worker_count=len(shares),
            workers=tuple(shares[:MOST_WORKERS_SHOWN]),
        )
        objects = tuple(fact for each in ordered for fact in each.objects)
        nulls = sum(each.nulls for each in ordered)
        return Spread(
            reduction, partial.dtype, nulls, partial.read, sum(each.nbytes for each in ordered), objects, view
        )

    @staticmethod
    def _shares(ordered: Sequence[PartitionDone]) -> list[PartitionWorker]:
        by: dict[str, list[PartitionDone]] = {}
        for each in ordered:
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


def in_pairs(partials: Sequence[PartialValue]) -> PartialValue:
    """All partial values together, merged as a tree."""
    while len(partials) > 1:
        pairs = [partials[at : at + 2] for at in range(0, len(partials), 2)]
        partials = [reduce(PartialValue.merge, pair) for pair in pairs]
    return partials[0]


def _of_all(stages: Sequence[Stages], workers: int) -> Stages:
    """The time of all workers in each stage, divided by their number."""
    whole = reduce(added, stages)
    shared = (
        None if each is None else each / workers
        for each in (whole.read_s, whole.decode_s, whole.copy_s, whole.reduce_s)
    )
    return Stages(*shared)
