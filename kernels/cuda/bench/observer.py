"""The conditions of a GPU, through NVML."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from warpfold.kernels.bench.ceiling import memory_peak
from warpfold.kernels.bench.conditions import Conditions

T = TypeVar("T")

# The reasons that count as throttling. An idle GPU's low clocks and clocks that its owner has set do not count.
_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "SwPowerCap": "power_cap",
        "HwSlowdown": "hw_slowdown",
        "SyncBoost": "sync_boost",
        "SwThermalSlowdown": "thermal",
        "HwThermalSlowdown": "hw_thermal",
        "HwPowerBrakeSlowdown": "power_brake",
    }
)


class NvmlObserver:
    """Observes the GPU at a PCI address ("0000:17:00.0"). A condition that NVML does not report on this machine is
    None."""

    def __init__(self, pci_bus_id: str) -> None:
        self._handle: Any = None
        try:
            import pynvml
        except ImportError:
            return
        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode())
        except pynvml.NVMLError:
            self._handle = None

    @property
    def max_clock_mhz(self) -> float | None:
        return self._asked(lambda: float(self._nvml.nvmlDeviceGetMaxClockInfo(self._handle, self._nvml.NVML_CLOCK_SM)))

    @property
    def memory_peak(self) -> float | None:
        """Bytes a second, from the highest memory clock and the width of the bus."""

        def ask() -> float:
            clock = self._nvml.nvmlDeviceGetMaxClockInfo(self._handle, self._nvml.NVML_CLOCK_MEM)
            return memory_peak(clock, self._nvml.nvmlDeviceGetMemoryBusWidth(self._handle))

        return self._asked(ask)

    def before(self) -> Conditions:
        return self._look()

    def after(self) -> Conditions:
        return self._look()

    def _look(self) -> Conditions:
        if self._handle is None:
            return Conditions()
        nvml, handle = self._nvml, self._handle
        return Conditions(
            clock_mhz=self._asked(lambda: float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
            memory_clock_mhz=self._asked(lambda: float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))),
            temperature_c=self._asked(lambda: float(nvml.nvmlDeviceGetTemperatureV(handle, nvml.NVML_TEMPERATURE_GPU))),
            power_w=self._asked(lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            throttle=self._asked(self._throttle) or (),
            others=self._asked(self._others),
        )

    def _throttle(self) -> tuple[str, ...]:
        bits = self._nvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle)
        names = ((getattr(self._nvml, f"nvmlClocksEventReason{reason}"), name) for reason, name in _REASONS.items())
        return tuple(name for bit, name in names if bits & bit)

    def _others(self) -> float:
        # One of the listed processes is this one. In a container its id in the list may differ from the id that it
        # knows.
        return max(0.0, len(self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)) - 1.0)

    def _asked(self, question: Callable[[], T]) -> T | None:
        """The answer of NVML. It is None where this GPU has no such value, and where this user may not ask for it."""
        if self._handle is None:
            return None
        try:
            return question()
        except self._nvml.NVMLError:
            return None
