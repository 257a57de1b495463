"""The tasks of a Dask worker. A task opens a partition, reduces it on the worker's device and returns its partial
result, or it merges the partial results of several partitions.

A Dask worker needs this package and no server: neither Postgres nor Redis. A fault of the elements is returned, and not
raised, because Dask would write every raised error to its log. All other errors are raised.
"""

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeVar

from distributed import get_worker

from warpfold.contract.folders import Folders
from warpfold.contract.keyed import open_rows, plan_of
from warpfold.contract.kinds.groupby import GroupbySpec
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.sources import Source
from warpfold.kernels.backend import LISTED, GroupedReduction, Progress, Stages
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import InvalidInput, KernelError, OutOfMemory, Unavailable
from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.machine.cores import cores_at_most
from warpfold.kernels.parts.array_partitions import reduce_part
from warpfold.kernels.parts.array_parts import ArrayPart
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.parts.keyed import KeyedSource
from warpfold.kernels.parts.merged import Merged, merge
from warpfold.kernels.parts.partial import PartialTable
from warpfold.kernels.parts.partitions import Reduced, reduce_partition
from warpfold.kernels.parts.row_partitions import merged_rows, reduce_rows
from warpfold.kernels.places.place import ObjectMetadata
from warpfold.kernels.query import Shaped
from warpfold.kernels.source import part_of, unchanged
from warpfold.kernels.sources.absent_chunks import AbsentChunks
from warpfold.kernels.sources.sections import sections_between
from warpfold.kernels.sources.sequential import Elements, SequentialSource, absences_of, counted, dialects_of, shaped
from warpfold.worker.dask.device import device_of_worker, own_version

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of the elements of a job: the elements start … stop − 1 of its sources; for a source that is read in
    order, its sections start … stop − 1; or all elements where both are None. For a group-by it has rows, or row
    groups, of the table. `part` is its part of an array that is reduced to many values. Errors call the partition
    `name`, and its elements take about `nbytes` in memory."""

    number: int
    name: str
    sources: tuple[Source, ...]
    nbytes: int
    start: int | None = None
    stop: int | None = None
    part: ArrayPart | None = None


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """One partition of a job, as it is sent to a Dask worker. `version` is the version of the slot's package."""

    version: str
    spec: ReduceSpec | GroupbySpec
    partition: Partition
    folders: Folders


@dataclass(frozen=True, slots=True)
class Share:
    """The Dask worker that reduced a partition, its device, and for how many seconds it was busy with it."""

    worker: str
    host: str
    backend: str
    device: str
    busy_s: float


@dataclass(frozen=True, slots=True)
class PartitionDone:
    """A reduced partition: its partial result, unless that was merged already, and the values whose elements all lie in
    this partition. `read` is how many elements or rows it had, `nbytes` is their size, `nulls` is how many were left
    out, `absences` are the chunks that the files lack, and `objects` are the objects that were read by URLs. The times
    are those of a `Reduction`; `strategy` names the strategy, and `kernel` the loops that were chosen for a table or an
    array."""

    number: int
    partial: PartialTable | None
    values: GroupedReduction | None
    read: int
    nbytes: int
    nulls: int
    absences: tuple[AbsentChunks, ...]
    objects: tuple[ObjectMetadata, ...]
    dialects: tuple[Dialect, ...]
    share: Share
    dtypes: tuple[str, ...]
    strategy: str
    kernel: str | None
    load_ms: float
    kernel_ms: float
    prepare_ms: float
    stages: Stages | None


@dataclass(frozen=True, slots=True)
class PartitionsMerged:
    """Several partitions, and their merged partial result."""

    done: tuple[PartitionDone, ...]
    partial: PartialTable


@dataclass(frozen=True, slots=True)
class PartitionFailed:
    """A partition that cannot be reduced; `reason`, `error` and `field` are those of a KernelError."""

    number: int
    reason: str
    error: str
    worker: str
    field: str | None = None


class Withdrawn(Exception):
    """Nobody waits for the partition any more."""


def run_task(task: PartitionTask) -> PartitionDone | PartitionFailed:
    """Reduce one partition. Raises Withdrawn, and unforeseen errors."""
    number, own, worker = task.partition.number, own_version(), get_worker().address
    if own != task.version:
        other = f"Dask worker {worker} has warpfold {own}, and the slot has {task.version}"
        return PartitionFailed(number, Unavailable.reason, other, worker)
    return _with_fault(number, lambda: _reduced(task))


def merge_task(
    spec: ReduceSpec | GroupbySpec, parts: Sequence[PartitionDone | PartitionFailed]
) -> PartitionsMerged | PartitionFailed:
    """Merge the partial results of several partitions, unless one of them has failed. Raises unforeseen errors."""
    done = []
    for part in parts:
        if isinstance(part, PartitionFailed):
            return part
        done.append(part)
    return _with_fault(done[0].number, lambda: _merged(spec, done))


def _with_fault(number: int, work: Callable[[], T]) -> T | PartitionFailed:
    worker = get_worker().address
    try:
        return work()
    except KernelError as error:
        fault = error.field if isinstance(error, InvalidInput) else None
        return PartitionFailed(number, error.reason, str(error), worker, fault)
    except MemoryError:
        full = "its elements do not fit into the memory of the worker"
        return PartitionFailed(number, OutOfMemory.reason, full, worker)


def _merged(spec: ReduceSpec | GroupbySpec, done: Sequence[PartitionDone]) -> PartitionsMerged:
    merged = merged_rows(plan_of(spec)) if isinstance(spec, GroupbySpec) else Merged([spec.row()])
    partial = merge([each.partial for each in done if each.partial is not None], merged)
    return PartitionsMerged(tuple(replace(each, partial=None) for each in done), partial)


def _reduced(task: PartitionTask) -> PartitionDone:
    worker = get_worker()
    key = worker.get_current_task()
    device = device_of_worker()

    def progress(done: int, total: int) -> None:
        state = worker.state.tasks.get(key)
        if state is None or state.state == "cancelled":
            raise Withdrawn

    def work(backend: Backend) -> PartitionDone:
        share = Share(worker.address, socket.gethostname(), backend.device.backend, backend.device.name, 0.0)
        if isinstance(task.spec, GroupbySpec):
            return _rows(task.spec, task, backend, share, progress)
        return (_one_value if task.partition.part is None else _many_values)(task.spec, task, backend, share, progress)

    with device.turn, cores_at_most(worker.state.nthreads):
        began = time.perf_counter()
        done, _ = device.run(work)
        return replace(done, share=replace(done.share, busy_s=time.perf_counter() - began))


def _one_value(
    spec: ReduceSpec, task: PartitionTask, backend: Backend, share: Share, progress: Progress
) -> PartitionDone:
    opened: list[Sequence[Elements]] = []

    def begin() -> tuple[Elements, Elements | None]:
        sources = _open(task.partition, task.folders)
        opened.append(sources)
        return sources[0], sources[1] if len(sources) > 1 else None

    reduced = reduce_partition(
        backend, begin, spec.row(), task.partition.number, nan_policy=spec.nan_policy, progress=progress
    )
    for sources in opened:
        _check_unchanged(task.partition, sources)
    return _done(task, reduced, opened[0], share, partial=reduced.partial, read=reduced.read)


def _many_values(
    spec: ReduceSpec, task: PartitionTask, backend: Backend, share: Share, progress: Progress
) -> PartitionDone:
    part = task.partition.part
    assert part is not None, "the array is reduced to many values"
    opened = _open(task.partition, task.folders)
    taken: list[Elements] = []
    for source, named in zip(opened, task.partition.sources, strict=True):
        if isinstance(source, SequentialSource) or (part.start is None and part.panel is None):
            whole, shape = shaped(source, named.known_shape)
            if taken and isinstance(part.grouping, AlongAxes) and shape != part.shape:
                raise InvalidInput(f"{spec.op} needs two sources of one shape, not {part.shape} and {shape}", "other")
            taken.append(whole)
            part = replace(part, shape=shape)
        else:
            taken.append(part.taken(source))
    query = Shaped(
        source=taken[0], op=spec.row(), other=taken[1] if len(taken) > 1 else None, nan_policy=spec.nan_policy,
        ddof=spec.ddof, shape=part.shape, grouping=part.grouping, states=spec.states,
        fractions=prod(part.grouping.result_shape(part.shape)) <= LISTED,
    )  # fmt: skip
    reduced = reduce_part(backend, query, part, progress)
    _check_unchanged(task.partition, opened)
    reduction = reduced.reduction
    values = reduction if reduced.partial is None else replace(reduction, values=(), counts=())
    read = counted(taken[0])
    done = _done(task, reduced.reduction, opened, share, partial=reduced.partial, read=read)
    return replace(done, values=values)


def _rows(spec: GroupbySpec, task: PartitionTask, backend: Backend, share: Share, progress: Progress) -> PartitionDone:
    partition = task.partition
    if partition.sources:
        spec = spec.model_copy(update={"source": partition.sources[0]})
    between = None if partition.start is None or partition.stop is None else (partition.start, partition.stop)
    rows: KeyedSource = open_rows(spec, task.folders, between)
    table, partial = reduce_rows(backend, rows, plan_of(spec), partition.number, progress)
    read = partial.rows
    return PartitionDone(
        number=partition.number,
        partial=partial,
        values=None,
        read=read,
        nbytes=read * sum(dtype.itemsize for dtype in rows.dtypes),
        nulls=0,
        absences=(),
        objects=tuple(remote.metadata() for remote in rows.remotes()),
        dialects=rows.dialects(),
        share=share,
        dtypes=tuple(dtype.name for dtype in rows.dtypes),
        strategy="exact",
        kernel=table.kernel,
        load_ms=table.load_ms,
        kernel_ms=table.kernel_ms,
        prepare_ms=table.prepare_ms,
        stages=table.stages,
    )


def _done(
    task: PartitionTask, reduced: Reduced | GroupedReduction, opened: Sequence[Elements], share: Share,
    *, partial: PartialTable | None, read: int,
) -> PartitionDone:  # fmt: skip
    decoded = [source for source in opened if isinstance(source, SequentialSource)]
    return PartitionDone(
        number=task.partition.number,
        partial=partial,
        values=None,
        read=read,
        nbytes=read * sum(source.dtype.itemsize for source in opened),
        nulls=sum(source.tally.nulls for source in decoded),
        absences=tuple(absences_of(opened)),
        objects=tuple(remote.metadata() for source in decoded for remote in source.tally.objects),
        dialects=dialects_of(decoded),
        share=share,
        dtypes=tuple(source.dtype.name for source in opened),
        strategy=reduced.strategy,
        kernel=reduced.kernel if isinstance(reduced, GroupedReduction) else None,
        load_ms=reduced.load_ms,
        kernel_ms=reduced.kernel_ms,
        prepare_ms=reduced.prepare_ms,
        stages=reduced.stages,
    )


def _check_unchanged(partition: Partition, sources: Sequence[Elements]) -> None:
    for named, source in zip(partition.sources, sources, strict=True):
        if not unchanged(source):
            raise InvalidInput(f"{named.identity()} changed while it was read", "source")


def _open(partition: Partition, folders: Folders) -> list[Elements]:
    sources: list[Any] = [named.open(folders) for named in partition.sources]
    if partition.start is None or partition.stop is None:
        return sources
    begin, end = partition.start, partition.stop
    return [
        sections_between(source, begin, end) if isinstance(source, SequentialSource) else part_of(source, begin, end)
        for source in sources
    ]
