"""A CPU as the thing measured, for real: every figure here depends on this machine, so only orders are asserted."""

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from warpfold.kernels.bench.axes import Axes, Cache
from warpfold.kernels.bench.engine import run
from warpfold.kernels.bench.host import HostTarget
from warpfold.kernels.bench.host.observer import HostObserver
from warpfold.kernels.bench.host.timer import HostTimer
from warpfold.kernels.bench.record import Record, record_of
from warpfold.kernels.bench.stopping import Rule
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import InvalidInput, OutOfMemory
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.source import ArraySource, GeneratedSource, Source
from warpfold.kernels.studies.outcome import Outcome

QUICK = Rule(target_rse=0.5, min_samples=3, max_samples=10, time_limit_s=1.0)


class Reading:
    """Reads an array that fits into a cache, slowly enough for the clock."""

    waits = True

    def __init__(self, nbytes: int) -> None:
        self.data = np.ones(nbytes // 8)
        self.read_bytes = nbytes

    def run(self) -> None:
        self.data.sum()

    def value(self) -> float:
        return 0.0


CACHE_BYTES = 8 << 20
"""Less than many a CPU has: displacing a cache of half a gigabyte, as servers have, takes seconds."""


@pytest.fixture(scope="module")
def target() -> Iterator[HostTarget]:
    backend = CpuBackend(CACHE_BYTES)
    yield HostTarget(backend)
    backend.close()


def source_of(dtype: str, n: int) -> Source:
    return GeneratedSource("uniform", n, 7, dtype_named(dtype))


def test_a_reduction_is_measured_and_its_value_checked(target: HostTarget) -> None:
    axes = Axes(("exact", "numpy"), ("sum", "argmax"), ("float32",), (100_000,), (Cache.HOT,))
    rows = [record_of(point) for point in run(target, axes, QUICK, source_of)]
    assert [row.outcome for row in rows] == ["measured"] * 4
    for row in rows:
        assert row.bytes == 400_000
        assert row.kernel_ms is not None
        assert row.min_ms is not None
        assert 0 < row.min_ms <= row.kernel_ms
        assert row.clock == "wall clock"
        assert row.distinct_values == 1
    exact_sum, numpy_sum = rows[0], rows[1]
    assert exact_sum.relative_error == 0.0
    assert numpy_sum.relative_error is not None
    assert numpy_sum.relative_error < 1e-5


def test_a_cold_cache_is_slower_than_a_hot_one() -> None:
    timer, workload = HostTimer(CACHE_BYTES), Reading(256 << 10)
    timer.device(workload, Cache.HOT, 5)
    hot = min(timer.device(workload, Cache.HOT, 30))
    cold = min(timer.device(workload, Cache.COLD, 30))
    assert cold > hot


def test_what_a_strategy_does_not_claim_is_skipped(target: HostTarget) -> None:
    axes = Axes(("single_pass", "exact"), ("sum",), ("float32",), (1000,), (Cache.HOT,))
    skipped, measured = (record_of(point) for point in run(target, axes, QUICK, source_of))
    assert (skipped.outcome, measured.outcome) == (Outcome.SKIPPED, Outcome.MEASURED)
    assert skipped.reason is not None
    assert "on backend 'cpu'" in skipped.reason


def test_data_beyond_this_hosts_memory_are_refused_before_they_are_made(target: HostTarget) -> None:
    with pytest.raises(OutOfMemory, match=r"the data take 4398\.0 GB, and .* are free"):
        target.load(source_of("float32", 1 << 40))


def test_an_unknown_strategy_is_refused(target: HostTarget) -> None:
    loaded = target.load(ArraySource(np.ones(3)))
    with pytest.raises(InvalidInput, match="unknown strategy 'nope'"):
        loaded.workload("sum", "nope")


def test_the_ceiling_is_a_speed_of_memory_and_below_what_cores_can_load(target: HostTarget) -> None:
    ceiling = target.ceiling
    assert 1e8 < ceiling.measured < ceiling.cached
    assert ceiling.peak is None
    assert ceiling.cache_bytes == CACHE_BYTES


def test_own_work_is_not_contention_but_nobody_elses_is_negative() -> None:
    observer = HostObserver()
    observer.before()
    until = time.monotonic() + 0.3
    data = np.ones(1 << 16)
    while time.monotonic() < until:
        data.sum()
    others = observer.after().others
    assert others is not None
    assert 0 <= others <= usable_cores()


def test_a_look_too_short_to_count_counts_nothing() -> None:
    observer = HostObserver()
    observer.before()
    assert observer.after().others is None


def test_a_record_is_flat_enough_to_be_stored(target: HostTarget) -> None:
    threads = threading.active_count()  # of this test's process, which may have run others before
    axes = Axes(("numpy",), ("min",), ("int8",), (1000,), (Cache.HOT,))
    (point,) = run(target, axes, QUICK, source_of)
    assert isinstance(record_of(point), Record)
    assert threading.active_count() < threads + 20
