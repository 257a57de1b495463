import sys
import threading
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from tests.support.waiting import until
from warpfold.app.metrics.devices import Reading
from warpfold.worker.gauges import Gauges, NvmlGauges, gauges_of, read_machine


class NvmlError(Exception):
    pass


def fake_nvml(**answers: Any) -> SimpleNamespace:
    """NVML of a GPU that tells the `answers` only. There is no GPU here; tests/gpu reads a real one."""

    def refuse(*_: object) -> object:
        raise NvmlError

    names = (
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetMaxClockInfo",
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetHandleByUUID",
    )
    asked = {name: (lambda *_, answer=answers[name]: answer) if name in answers else refuse for name in names}
    constants = {"NVML_TEMPERATURE_GPU": 0, "NVML_CLOCK_SM": 1, "NVML_CLOCK_MEM": 2}
    return SimpleNamespace(nvmlInit=lambda: None, NVMLError=NvmlError, **constants, **asked)


def test_the_machines_gauges_are_those_of_its_cpu_and_memory() -> None:
    read_machine()
    reading = read_machine()
    assert reading.memory_total_bytes == psutil.virtual_memory().total
    assert reading.utilisation_percent is not None
    assert 0 <= reading.utilisation_percent <= 100


def test_what_a_gpu_does_not_tell_is_null_and_the_rest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "nvmlDeviceGetHandleByUUID": "handle",
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=87),
        "nvmlDeviceGetPowerUsage": 512_340,
    }
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(**answers))
    reading = NvmlGauges("GPU-1").read()
    assert (reading.utilisation_percent, reading.power_w) == (87, 512.34)
    assert (reading.temperature_c, reading.memory_used_bytes) == (None, None)


def test_a_gpu_that_nvml_does_not_find_reads_as_nulls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    assert NvmlGauges("GPU-1").read() == Reading()


def test_a_gauge_that_hangs_keeps_nobody_waiting() -> None:
    hang = threading.Event()

    def read() -> Reading:
        hang.wait()
        return Reading()

    gauges = Gauges(read)
    gauges.start()
    assert gauges.latest() is None
    gauges.stop()
    hang.set()


def test_a_slot_of_the_cpu_reads_the_machine() -> None:
    gauges = gauges_of("cpu", None)
    gauges.start()
    latest = until(gauges.latest)
    assert latest is not None
    gauges.stop()
    assert latest.memory_used_bytes is not None
