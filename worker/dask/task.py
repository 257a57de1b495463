"""What runs on a Dask worker: it opens a partition, reduces it on the worker's device and returns a partial value.

A Dask worker needs this package and no server: neither Postgres nor Redis. A fault of the elements is returned, and not
raised, because Dask would write every raised error to its log. Whatever else goes wrong is raised.
"""

import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any

import dask
import structlog
from distributed import get_worker
from structlog.typing import FilteringBoundLogger

from warpfold.contract.folders import Folders
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.sources import Source
from warpfold.kernels.backend import Backend
from warpfold.kernels.cores import cores_at_most
from warpfold.kernels.cpu.memory import keep_freed_memory
from warpfold.kernels.cuda.gpu.device import visible_devices
from warpfold.kernels.errors import InvalidInput, KernelError, OutOfMemory, Unavailable
from warpfold.kernels.mapped import survive_cuts
from warpfold.kernels.open import open_backend
from warpfold.kernels.ops import op_named
from warpfold.kernels.partitions import Reduced, reduce_partition
from warpfold.kernels.places.place import ObjectFacts
from warpfold.kernels.sections import sections_between
from warpfold.kernels.sequential import Elements, SequentialSource
from warpfold.kernels.source import part_of, unchanged

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of the elements of a job: elements start … stop − 1 of its sources, or of a source that comes in order its
    sections start … stop − 1, or all elements where these are None. `name` is what errors call it, and `nbytes` about
    what its elements take in memory."""

    number: int
    name: str
    sources: tuple[Source, ...]
    nbytes: int
    start: int | None = None
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """One partition of a job, as it is sent to a Dask worker. `version` is that of the slot's package."""

    version: str
    spec: ReduceSpec
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
    """A reduced partition, the bytes of its elements, the nulls that were left out, and what it read by URLs."""

    number: int
    reduced: Reduced
    nbytes: int
    nulls: int
    objects: tuple[ObjectFacts, ...]
    share: Share


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


@dataclass(frozen=True, slots=True)
class WorkerDevice:
    """The device of this Dask worker. It reduces one partition at a time, with all threads that Dask gave the worker:
    threads that wait for their turn use no processor."""

    backend: Backend
    turn: threading.Lock = field(default_factory=threading.Lock)


@cache
def device_of_worker() -> WorkerDevice:
    """The device that Dask's configuration names as `warpfold.device`; or else the first GPU that CUDA shows this
    process, else its CPU. It is opened at the first call."""
    survive_cuts()
    keep_freed_memory()
    named = dask.config.get("warpfold.device", None)
    return WorkerDevice(open_backend(named or ("cuda:0" if _has_gpu() else "cpu")))


def _has_gpu() -> bool:
    try:
        return bool(visible_devices())
    except OSError as error:
        # NVIDIA's package looks for its driver by a process of its own, for which a machine may be too busy.
        log.warning("no GPU found", error=str(error))
        return False


@cache
def own_version() -> str:
    """The version of this process's package. To look it up takes milliseconds."""
    return version("warpfold")


def open_device() -> str:
    """Open the device of this Dask worker, which takes seconds; returns its name."""
    return device_of_worker().backend.device.name


def run_task(task: PartitionTask) -> PartitionDone | PartitionFailed:
    """Reduce one partition. Raises Withdrawn, and what nobody foresaw."""
    number, own, worker = task.partition.number, own_version(), get_worker().address
    if own != task.version:
        other = f"Dask worker {worker} has warpfold {own}, and the slot has {task.version}"
        return PartitionFailed(number, Unavailable.reason, other, worker)
    try:
        return _reduced(task)
    except KernelError as error:
        fault = error.field if isinstance(error, InvalidInput) else None
        return PartitionFailed(number, error.reason, str(error), worker, fault)
    except MemoryError:
        full = "its elements do not fit into the memory of the worker"
        return PartitionFailed(number, OutOfMemory.reason, full, worker)


def _reduced(task: PartitionTask) -> PartitionDone:
    worker, spec = get_worker(), task.spec
    key = worker.get_current_task()
    op = op_named(spec.op)
    device = device_of_worker()
    opened: list[Sequence[Elements]] = []

    def begin() -> tuple[Elements, Elements | None]:
        sources = _open(task.partition, task.folders)
        opened.append(sources)
        return sources[0], sources[1] if len(sources) > 1 else None

    def progress(done: int, total: int) -> None:
        state = worker.state.tasks.get(key)
        if state is None or state.state == "cancelled":
            raise Withdrawn

    with device.turn, cores_at_most(worker.state.nthreads):
        began = time.perf_counter()
        reduced = reduce_partition(
            device.backend, begin, op, task.partition.number, nan_policy=spec.nan_policy, progress=progress
        )
        busy_s = time.perf_counter() - began
    for sources in opened:
        for named, source in zip(task.partition.sources, sources, strict=True):
            if not unchanged(source):
                raise InvalidInput(f"{named.identity()} changed while it was read", "source")
    decoded = [source for source in opened[0] if isinstance(source, SequentialSource)]
    facts = device.backend.device
    return PartitionDone(
        number=task.partition.number,
        reduced=reduced,
        nbytes=reduced.partial.read * sum(source.dtype.itemsize for source in opened[0]),
        nulls=sum(source.tally.nulls for source in decoded),
        objects=tuple(remote.facts() for source in decoded for remote in source.tally.objects),
        share=Share(worker.address, socket.gethostname(), facts.backend, facts.name, busy_s),
    )


def _open(partition: Partition, folders: Folders) -> list[Elements]:
    sources: list[Any] = [named.open(folders) for named in partition.sources]
    if partition.start is None or partition.stop is None:
        return sources
    begin, end = partition.start, partition.stop
    return [
        sections_between(source, begin, end) if isinstance(source, SequentialSource) else part_of(source, begin, end)
        for source in sources
    ]
