"""The device of a Dask worker, on which its tasks reduce in turn."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import TypeVar

import dask
import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.kernels.cpu.memory import keep_freed_memory
from warpfold.kernels.cuda.gpu.device import visible_devices
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.open import open_backend
from warpfold.kernels.sources.mapped import survive_cuts

log: FilteringBoundLogger = structlog.get_logger()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerDevice:
    """The device of this Dask worker. It reduces one partition at a time, with all threads that Dask gave the worker:
    threads that wait for their turn use no processor."""

    backend: Backend
    turn: threading.Lock = field(default_factory=threading.Lock)

    def run(self, work: Callable[[Backend], T]) -> tuple[T, Backend]:
        """The result of `work` on the device, and the backend that computed it. Where a GPU refuses the reduction, the
        CPU computes it. Raises the errors of `work`."""
        try:
            return work(self.backend), self.backend
        except InvalidInput as error:
            if self.backend.device.backend == "cpu" or error.field not in _OF_A_GPU:
                raise
        beside = _cpu()
        return work(beside), beside


_OF_A_GPU = ("axis", "backend")
"""The fields by which a GPU refuses what a CPU may do."""


@cache
def _cpu() -> Backend:
    return open_backend("cpu")


_OPENING = threading.Lock()
"""Of threads that begin together, one opens the device: two devices would have two turns."""


def device_of_worker() -> WorkerDevice:
    """The device that Dask's configuration names as `warpfold.device`. By default it is the first GPU that CUDA shows
    this process, or else the CPU. It is opened at the first call."""
    with _OPENING:
        return _device_of_worker()


@cache
def _device_of_worker() -> WorkerDevice:
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
    """The version of this process's package. It is cached, because looking it up takes milliseconds."""
    return version("warpfold")


def open_device() -> str:
    """Open the device of this Dask worker, which takes seconds; returns its name."""
    return device_of_worker().backend.device.name
