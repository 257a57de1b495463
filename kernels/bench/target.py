"""A device that is ready to be benchmarked: what the engine needs of it, and nothing else."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from numpy.typing import NDArray

from warpfold.kernels.backend import Device
from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.bench.conditions import Observer
from warpfold.kernels.bench.measurement import Timer
from warpfold.kernels.bench.workload import ShapedWorkload, Workload
from warpfold.kernels.driver import Backend
from warpfold.kernels.source import Source
from warpfold.kernels.studies.shapes import CaseShape


class Loaded(Protocol):
    """An array that lies on the device."""

    def workload(self, op: str, strategy: str) -> Workload:
        """The reduction of this array, compiled and with its workspace, but not yet run.

        Raises InvalidInput if the strategy does not compute that, Unavailable if this machine cannot, OutOfMemory.
        """
        ...


class LoadedShape(Protocol):
    """The elements of a shape, with its offsets or keys, on the device."""

    @property
    def counts(self) -> NDArray[Any]:
        """How many elements make each value, shape (values,)."""
        ...

    @property
    def largest(self) -> float:
        """The largest magnitude among the elements."""
        ...

    def workload(self, op: str, strategy: str) -> ShapedWorkload:
        """The reduction of this shape, as `Loaded.workload` gives that of an array."""
        ...

    def members(self, number: int) -> NDArray[Any]:
        """The elements of one value, on the host."""
        ...


class BenchmarkTarget(Protocol):
    """A device to be benchmarked."""

    @property
    def device(self) -> Device: ...

    def active(self) -> AbstractContextManager[None]:
        """A context to hold while workloads are made, run and timed: the device is then this thread's current one."""
        ...

    @property
    def timer(self) -> Timer: ...

    @property
    def observer(self) -> Observer: ...

    @property
    def ceiling(self) -> Ceiling:
        """The ceiling is measured at the first call, and again at later calls while other work disturbs it
        (`CeilingGauge`)."""
        ...

    def load(self, source: Source) -> Loaded:
        """Bring all elements to the device. Raises OutOfMemory saying how much there is."""
        ...

    def load_shape(self, source: Source, shape: CaseShape, seed: int) -> LoadedShape:
        """Bring the elements of a shape to the device, and the offsets or keys that follow from `seed`. Raises
        OutOfMemory saying how much there is."""
        ...


def open_target(backend: Backend) -> BenchmarkTarget:
    """The benchmark target of an open backend, which goes on to own the device."""
    if backend.device.backend == "cpu":
        from warpfold.kernels.bench.host import HostTarget

        return HostTarget(backend)
    from warpfold.kernels.cuda.backend import CudaBackend
    from warpfold.kernels.cuda.bench.target import CudaTarget

    assert isinstance(backend, CudaBackend)
    return CudaTarget(backend)
