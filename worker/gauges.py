"""Reads a device's gauges for the people who look at the dashboard."""

import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any, TypeVar

import psutil

from warpfold.app.metrics.devices import Reading

T = TypeVar("T")

_EVERY_S = 2.0
_FRESH_S = 10.0


class Gauges:
    """Keeps the latest reading of one device, which a thread of its own takes.

    A driver in trouble can make NVML wait for long. The heartbeat, which says that the worker is alive, must not wait
    for NVML: it takes the latest reading, or none if that is more than ten seconds old.
    """

    def __init__(self, read: Callable[[], Reading], every_s: float = _EVERY_S) -> None:
        self._read = read
        self._every_s = every_s
        self._lock = Lock()
        self._taken: tuple[Reading, float] | None = None
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="gauges", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Take no more readings. This does not wait for a reading that hangs."""
        self._stopping.set()

    def latest(self) -> Reading | None:
        """The latest reading, or None if it is old."""
        with self._lock:
            taken = self._taken
        return taken[0] if taken is not None and time.monotonic() - taken[1] < _FRESH_S else None

    def _run(self) -> None:
        while not self._stopping.is_set():
            reading = self._read()
            with self._lock:
                self._taken = (reading, time.monotonic())
            self._stopping.wait(self._every_s)


def gauges_of(backend: str, uuid: str | None) -> Gauges:
    """The gauges of a slot: those of the GPU with this `uuid` ("GPU-…") or, for a CPU slot, those of the machine."""
    return Gauges(NvmlGauges(uuid).read if backend == "cuda" and uuid else read_machine)


def read_machine() -> Reading:
    """Read the CPU and the memory of the whole machine. The utilisation is that since the last call in this process."""
    memory = psutil.virtual_memory()
    frequency = psutil.cpu_freq()
    return Reading(
        utilisation_percent=psutil.cpu_percent(None),
        memory_used_bytes=memory.total - memory.available,
        memory_total_bytes=memory.total,
        clock_mhz=frequency.current or None if frequency else None,
        max_clock_mhz=frequency.max or None if frequency else None,
    )


class NvmlGauges:
    """The gauges of a GPU. A gauge that NVML does not read is null, and without NVML all are."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._handle: Any = None
        self._nvml: Any = None

    def read(self) -> Reading:
        nvml, handle = self._opened()
        if handle is None:
            return Reading()
        utilisation = self._asked(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        memory = self._asked(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        return Reading(
            utilisation_percent=utilisation,
            memory_used_bytes=None if memory is None else memory.used,
            memory_total_bytes=None if memory is None else memory.total,
            temperature_c=self._asked(lambda: nvml.nvmlDeviceGetTemperatureV(handle, nvml.NVML_TEMPERATURE_GPU)),
            power_w=self._asked(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            power_limit_w=self._asked(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
            clock_mhz=self._asked(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            max_clock_mhz=self._asked(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
            memory_clock_mhz=self._asked(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
            processes=self._asked(lambda: len(nvml.nvmlDeviceGetComputeRunningProcesses(handle))),
        )

    def _opened(self) -> tuple[Any, Any]:
        if self._handle is None:
            try:
                import pynvml
            except ImportError:
                return None, None
            self._nvml = pynvml
            self._handle = self._asked(self._open)
        return self._nvml, self._handle

    def _open(self) -> Any:
        self._nvml.nvmlInit()
        return self._nvml.nvmlDeviceGetHandleByUUID(self._uuid)

    def _asked(self, question: Callable[[], T]) -> T | None:
        try:
            return question()
        except self._nvml.NVMLError:
            return None
