"""A CPU backend as a benchmark target."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.backend import Device, Reduction
from warpfold.kernels.bench.ceiling import Ceiling, CeilingGauge
from warpfold.kernels.bench.data import KEY
from warpfold.kernels.bench.host.observer import HostObserver, measure_ceiling
from warpfold.kernels.bench.host.shaped import HostShape
from warpfold.kernels.bench.host.timer import HostTimer
from warpfold.kernels.catalog import resolve
from warpfold.kernels.cpu.memory import cache_bytes
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.ops import Value, op_named
from warpfold.kernels.source import ArraySource, Source
from warpfold.kernels.studies.shapes import By, CaseShape


class HostTarget:
    """The CPU that `backend` reduces on."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._cache_bytes = backend.device.cache_bytes or cache_bytes()
        self._gauge = CeilingGauge(lambda: measure_ceiling(HostObserver(), self._cache_bytes))

    @property
    def device(self) -> Device:
        return self._backend.device

    def active(self) -> AbstractContextManager[None]:
        return nullcontext()

    @cached_property
    def timer(self) -> HostTimer:
        return HostTimer(self._cache_bytes)

    @cached_property
    def observer(self) -> HostObserver:
        return HostObserver()

    @property
    def ceiling(self) -> Ceiling:
        return self._gauge.read()

    def load(self, source: Source) -> "HostArray":
        _check_room(source.count * source.dtype.itemsize)
        return HostArray(self._backend, source.read(0, source.count), source.dtype)

    def load_shape(self, source: Source, shape: CaseShape, seed: int) -> HostShape:
        keys = KEY.itemsize if shape.by is By.KEYS else 0
        _check_room(source.count * (source.dtype.itemsize + keys))
        return HostShape.of(self._backend, source, shape, seed)


def _check_room(needed: int) -> None:
    import psutil

    free = int(psutil.virtual_memory().available)
    if needed > free:
        raise OutOfMemory(f"the data take {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB of memory are free")


@dataclass(frozen=True, eq=False)
class HostArray:
    """Elements in this process's memory, shape (n,)."""

    backend: Backend
    elements: NDArray[Any]
    dtype: DType

    def workload(self, op: str, strategy: str) -> "HostWorkload":
        name = resolve(op_named(op), self.dtype, strategy, "cpu")
        return HostWorkload(self.backend, ArraySource(self.elements), op, name)


class HostWorkload:
    """One reduction through the backend, as a job runs it."""

    waits = True

    def __init__(self, backend: Backend, source: ArraySource, op: str, strategy: str) -> None:
        self._backend, self._source, self._op, self._strategy = backend, source, op, strategy
        self._latest: Reduction | None = None

    @property
    def read_bytes(self) -> int:
        return self._source.count * self._source.dtype.itemsize

    def run(self) -> None:
        self._latest = self._backend.reduce(self._source, self._op, strategy=self._strategy)

    def value(self) -> Value:
        assert self._latest is not None, "run() comes first"
        return self._latest.value
