"""The rates of a slot are measured in short steps."""

import time
from pathlib import Path

import pytest

from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.machine import rates
from warpfold.kernels.machine.rates import Rates, measure


@pytest.fixture
def _little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few bytes and few passes."""
    monkeypatch.setattr(rates, "STEP_S", 0.0)
    for name in ("_LEAST_BYTES", "_MOST_BYTES", "_MADE_ON_CPU"):
        monkeypatch.setattr(rates, name, 1 << 20)


@pytest.mark.usefixtures("_little")
def test_a_cpu_reads_and_adds_and_copies_nothing() -> None:
    *steps, measured = measure(CpuBackend())
    assert len(steps) >= 3, "a job need wait for none but the step that runs"
    assert set(steps) == {None}
    assert isinstance(measured, Rates)
    assert measured.copy_gb_per_s is None
    for rate in (measured.read_gb_per_s, measured.reduce_gb_per_s, measured.generate_gb_per_s):
        assert 1e-3 < rate < 1e4
    assert 0 < measured.overhead_s < 1


def test_the_fastest_pass_tells_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "STEP_S", 0.0)
    passes = iter([0.5, 0.25])
    assert rates._rate((10**9, lambda: next(passes))) == 4.0


@pytest.mark.usefixtures("_little")
def test_the_file_that_is_read_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    list(measure(CpuBackend()))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_little")
def test_an_error_of_the_device_is_the_caller_s(monkeypatch: pytest.MonkeyPatch) -> None:
    def reduce(*arguments: object) -> object:
        raise OutOfMemory("no memory")

    monkeypatch.setattr(CpuBackend, "reduce", reduce, raising=True)
    backend = object.__new__(CpuBackend)
    began = time.monotonic()
    with pytest.raises(OutOfMemory):
        next(measure(backend))
    assert time.monotonic() - began < 60
