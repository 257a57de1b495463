"""Which device a Dask worker reduces on, and what it leaves to its CPU."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import dask
import pytest

from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.worker.dask import device
from warpfold.worker.dask.device import WorkerDevice, device_of_worker


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    """No device is open before, and the others' is again afterwards."""
    device._device_of_worker.cache_clear()
    yield
    device._device_of_worker.cache_clear()


@pytest.mark.parametrize(
    ("gpus", "configured", "opened"),
    [(["a GPU"], None, "cuda:0"), ([], None, "cpu"), (["a GPU"], "cpu", "cpu"), ([], "cuda:1", "cuda:1")],
)
def test_a_worker_takes_what_is_configured_or_its_first_gpu_or_its_cpu(
    monkeypatch: pytest.MonkeyPatch, gpus: list[str], configured: str | None, opened: str
) -> None:
    monkeypatch.setattr(device, "visible_devices", lambda: gpus)
    monkeypatch.setattr(device, "open_backend", lambda name: SimpleNamespace(device=SimpleNamespace(name=name)))
    with dask.config.set({"warpfold.device": configured}):
        assert device.open_device() == opened


def test_threads_that_begin_together_open_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Barrier(4)

    def opened(name: str) -> Any:
        time.sleep(0.05)
        return SimpleNamespace(name=name)

    def begin(_: int) -> WorkerDevice:
        begun.wait(10)
        return device_of_worker()

    monkeypatch.setattr(device, "open_backend", opened)
    with dask.config.set({"warpfold.device": "cpu"}), ThreadPoolExecutor(4) as pool:
        assert len({id(each) for each in pool.map(begin, range(4))}) == 1


def test_what_a_gpu_refuses_is_done_by_the_cpu_of_its_worker() -> None:
    cpu = CpuBackend(8 << 20)
    gpu: Any = SimpleNamespace(device=replace(cpu.device, backend="cuda"))

    def work(field: str) -> Any:
        def of(backend: Any) -> str:
            if backend.device.backend == "cuda":
                raise InvalidInput("a GPU does not do that", field)
            return "done"

        return of

    for field in ("backend", "axis"):
        made, beside = WorkerDevice(gpu).run(work(field))
        assert (made, beside.device.backend) == ("done", "cpu")
    with pytest.raises(InvalidInput, match="a GPU does not do that"):
        WorkerDevice(gpu).run(work("nan_policy"))


def test_what_a_cpu_refuses_is_refused() -> None:
    tries: list[Any] = []

    def work(backend: Any) -> None:
        tries.append(backend)
        raise InvalidInput("there is no axis 3", "axis")

    with pytest.raises(InvalidInput, match="no axis 3"):
        WorkerDevice(CpuBackend(8 << 20)).run(work)
    assert len(tries) == 1
