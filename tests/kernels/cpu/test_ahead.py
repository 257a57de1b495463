"""The process that compiles a CPU slot's kernels in the background."""

from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.support.waiting import until
from warpfold.kernels.cpu.ahead import CompileAhead, compile_all
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.source import ArraySource


def test_it_has_the_lowest_priority_stands_still_while_a_job_runs_and_ends_with_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # with nothing in it there is much to do
    ahead = CompileAhead(wanted=True)
    assert ahead.pid is None
    ahead.start()
    assert ahead.pid is not None
    process = psutil.Process(ahead.pid)
    until(lambda: process.nice() == 19)
    with ahead.paused():
        until(lambda: process.status() == psutil.STATUS_STOPPED)
    until(lambda: process.status() != psutil.STATUS_STOPPED)
    ahead.start()
    assert ahead.pid == process.pid  # one a worker
    ahead.close()
    assert not psutil.pid_exists(process.pid)


def test_where_it_is_not_wanted_there_is_none() -> None:
    ahead = CompileAhead(wanted=False)
    ahead.start()
    with ahead.paused():
        assert ahead.pid is None
    ahead.close()


def test_after_it_there_is_nothing_left_to_compile() -> None:
    from warpfold.kernels.cpu import integers, windows

    backend = CpuBackend()
    assert compile_all(backend) > 150
    compiled = {name: len(getattr(windows, name).signatures) for name in ("add_float32", "add_float64")}
    sums = len(integers.add_signed.signatures)
    for dtype in (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64):
        backend.reduce(ArraySource(np.ones(3, dtype=dtype)), "sum")
    assert compiled == {name: len(getattr(windows, name).signatures) for name in compiled}
    assert sums == len(integers.add_signed.signatures) >= 4
