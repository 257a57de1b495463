"""Runs the partitions of a job on a Dask cluster: they are handed to the workers, and their partial results are handed
to the caller that combines them. The child of the slot takes each partial result as its partition ends. Where a worker,
or the whole cluster, is lost, only the partitions that it had in hand are reduced again. Large tables of states are
merged on the workers first, a few partitions at a time.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any

from distributed import KilledWorker

from warpfold.contract.folders import Folders
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.kernels.errors import CudaError, InvalidInput, KernelError, OutOfMemory, RankLost, Unavailable
from warpfold.kernels.parts.partial import PartialTable
from warpfold.worker.dask.cluster import Cluster
from warpfold.worker.dask.device import own_version
from warpfold.worker.dask.ran import Ran
from warpfold.worker.dask.task import (
    Partition,
    PartitionDone,
    PartitionFailed,
    PartitionsMerged,
    PartitionTask,
)

Report = Callable[[int, int], None]
"""Called with the bytes that are done, and those in all."""

_AHEAD = 4
"""So many partitions for each thread of the cluster are at the scheduler: enough that no worker waits for the slot."""

FAN_IN = 8
"""So many partitions are merged on a worker where what one adds is more than _LARGE bytes; the slot merges the rest."""

_LARGE = 1 << 18

_GATHER_S = 0.02

_LOOK_EVERY_S = 1.0
"""How often a cluster that gives nothing is asked for its workers."""

_REASONS: dict[str, Callable[[str], KernelError]] = {
    Unavailable.reason: Unavailable,
    OutOfMemory.reason: OutOfMemory,
    CudaError.reason: CudaError,
}


@dataclass(frozen=True, slots=True)
class Handed:
    """A future at the cluster that the slot is to gather, with the numbers of its partitions and, where a worker merges
    these, the futures of each partition."""

    future: Any
    numbers: tuple[int, ...]
    parts: tuple[Any, ...] = ()


@dataclass
class Partitions:
    """The partitions of one job: those to be handed out, those at the cluster, and those that are done. `take` gets the
    partial result of each, or the merged one of several; `done` keeps the other fields. Workers merge `fan_in`
    partitions, which grows where their tables are large."""

    cluster: Cluster
    spec: ReduceSpec | GroupbySpec
    folders: Folders
    partitions: Sequence[Partition]
    report: Report
    take: Callable[[PartialTable], None]
    fan_in: int = 1
    done: dict[int, PartitionDone] = field(default_factory=dict)
    _todo: deque[int] = field(default_factory=deque)
    _at: dict[str, Handed] = field(default_factory=dict)
    _ended: "SimpleQueue[Any]" = field(default_factory=SimpleQueue)
    _threads: int = 1
    _done_bytes: int = 0
    _part_bytes: dict[str, int] = field(default_factory=dict)
    _empty_since: float | None = None
    _look_at: float = 0.0
    _keys: set[str] = field(default_factory=set)
    _repeated: int = 0
    _lost_workers: "SimpleQueue[Sequence[str]]" = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        self._todo.extend(range(len(self.partitions)))
        self._total = sum(part.nbytes for part in self.partitions)
        self.folders = self.cluster.sendable(self.folders)

    def run(self) -> "Ran":
        """Have all partitions reduced. Raises a KernelError, which names the partition if one is at fault."""
        began = time.perf_counter()
        try:
            self._look()
            self.cluster.on_lost(self._lost_workers.put)
            while len(self.done) < len(self.partitions):
                self._hand_out()
                if ended := self._wait():
                    self._gather(ended)
                    done = self._done_bytes + sum(self._part_bytes.values())
                    self.report(done, max(self._total, done))
                elif time.monotonic() >= self._look_at:
                    self._look()
        finally:
            self.cluster.forget([future for each in self._at.values() for future in (each.future, *each.parts)])
        ordered = [self.done[number] for number in range(len(self.partitions))]
        return Ran(ordered, self.cluster.address, self._count_repeated(), (time.perf_counter() - began) * 1e3)

    def _hand_out(self) -> None:
        most = max(_AHEAD * self._threads, 16, 2 * self.fan_in)
        room = most - sum(len(each.numbers) for each in self._at.values())
        if room < most // 2 or not self._todo or not self.cluster.is_connected:
            return  # handing out many at a time costs less than one by one
        numbers = [self._todo.popleft() for _ in range(min(room, len(self._todo)))]
        tasks = [PartitionTask(own_version(), self.spec, self.partitions[at], self.folders) for at in numbers]
        futures = self.cluster.hand_out(tasks, self._ended.put)
        self._keys.update(future.key for future in futures)
        for start in range(0, len(numbers), self.fan_in):
            some = slice(start, start + self.fan_in)
            handed = Handed(futures[start], tuple(numbers[some]))
            if self.fan_in > 1:
                merged = self.cluster.merge(tasks[start], futures[some], self._ended.put)
                self._keys.add(merged.key)
                handed = Handed(merged, handed.numbers, tuple(futures[some]))
            self._at[handed.future.key] = handed

    def _wait(self) -> list[Any]:
        """The futures that have ended. The call returns soon after the first one ends, or with none after a tenth of a
        second."""
        ended: list[Any] = []
        try:
            ended.append(self._ended.get(timeout=0.1))
            if self._todo:  # gathering several states takes as long as gathering one
                time.sleep(_GATHER_S)
            while True:
                ended.append(self._ended.get_nowait())
        except Empty:
            return ended

    def _gather(self, ended: Sequence[Any]) -> None:
        self._count_parts(ended)
        whole = [future for future in ended if future.key in self._at and future.status == "finished"]
        for future in ended:
            if future.key in self._at and future.status != "finished":
                self._lost(self._at[future.key])
        for key, result in self.cluster.gathered({future.key: future for future in whole}).items():
            handed = self._at[key]
            if result is None:
                self._once_more(handed)
                continue
            del self._at[key]
            self._forget_parts(handed)
            if isinstance(result, PartitionFailed):
                raise self._failure(result)
            self._keep(result)

    def _keep(self, result: PartitionDone | PartitionsMerged) -> None:
        parts = result.done if isinstance(result, PartitionsMerged) else (result,)
        if (partial := result.partial) is not None:
            with self._named(parts[0].number):
                self.take(partial)
            if partial.nbytes > _LARGE:
                self.fan_in = FAN_IN
        for part in parts:
            self.done[part.number] = replace(part, partial=None)
            self._done_bytes += part.nbytes

    @contextmanager
    def _named(self, number: int) -> Iterator[None]:
        """Within the block, errors of merging name one of the partitions that were merged."""
        try:
            yield
        except InvalidInput as error:
            raise InvalidInput(f"{self._called(number)}: {error}", error.field) from None

    def _count_parts(self, ended: Sequence[Any]) -> None:
        """Note the partitions that have ended and are still to be merged on a worker. Only the progress needs this."""
        waiting = {
            future.key: number
            for each in self._at.values()
            for number, future in zip(each.numbers, each.parts, strict=bool(each.parts))
        }
        for future in ended:
            if future.key in waiting and future.status == "finished":
                self._part_bytes[future.key] = self.partitions[waiting[future.key]].nbytes

    def _forget_parts(self, handed: Handed) -> None:
        for future in handed.parts:
            self._part_bytes.pop(future.key, None)

    def _lost(self, handed: Handed) -> None:
        """Handle a future that gave no result: its worker died again and again, the scheduler was lost, or the task
        failed."""
        if handed.future.status != "error":
            self._once_more(handed)
            return
        error = handed.future.exception()
        failed = (at for at, part in zip(handed.numbers, handed.parts, strict=False) if part.status == "error")
        part = self._called(next(failed, handed.numbers[0]))
        if isinstance(error, KilledWorker):
            raise RankLost(f"{part}: each of the Dask workers that tried it died")
        if isinstance(error, KernelError):
            raise type(error)(f"{part}: {error}")
        assert error is not None
        raise error

    def _once_more(self, handed: Handed) -> None:
        del self._at[handed.future.key]
        self._forget_parts(handed)
        self._todo.extendleft(reversed(handed.numbers))
        self._repeated += len(handed.numbers)

    def _count_repeated(self) -> int:
        """How many partitions were handed out again, by this process, or by Dask because a worker was lost."""
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
        """Ask for the workers. Raises Unavailable where the cluster had no worker for too long."""
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        try:
            threads = self.cluster.workers()
            why = f"the Dask cluster at {self.cluster.address} has had no worker"
        except Unavailable as error:
            threads, why = {}, f"{error}"
        for handed in list(self._at.values()):
            if handed.future.status in ("cancelled", "lost"):  # the scheduler was away
                self._once_more(handed)
        if threads:
            self._threads, self._empty_since = sum(threads.values()), None
            return
        self._empty_since = self._empty_since or time.monotonic()
        if time.monotonic() - self._empty_since >= self.cluster.options.wait_s:
            raise Unavailable(
                f"{why} for {self.cluster.options.wait_s:g} s; {len(self.done)} of {len(self.partitions)} partitions "
                "were done"
            )
