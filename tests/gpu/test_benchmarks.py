"""A GPU as the thing measured: its clocks, its ceiling, its peers, its puzzles."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from kernels.bench import Axes, Cache, Outcome, Rule, record_of, run
from kernels.bench.data import Data
from kernels.bench.subject import Subject
from kernels.cuda.backend import CudaBackend
from kernels.cuda.baselines import baselines
from kernels.cuda.bench.gate import Gate, Waited
from kernels.cuda.bench.rig import CudaRig
from kernels.cuda.puzzles import CLUSTERS_SINCE
from kernels.cuda.strategies import own_strategies
from kernels.dtypes import DTYPES
from kernels.ops import OPS
from kernels.puzzles import Puzzle, Shape, checks, solve
from kernels.puzzles.model import model

QUICK = Rule(target_rse=0.05, min_samples=5, max_samples=50, time_limit_s=0.5)
MIB = 1 << 20


@pytest.fixture(scope="module")
def rig(backend: CudaBackend) -> Iterator[CudaRig]:
    made = CudaRig(backend)
    with made.active():
        yield made


def subject(rig: CudaRig, strategy: str, n: int, op: str = "sum", dtype: str = "float32") -> Subject:
    return rig.load(Data().source(dtype, n)).subject(op, strategy)


class Doing:
    """Does something in place of a reduction."""

    read_bytes = 4
    waits = False

    def __init__(self, what: Callable[[], object]) -> None:
        self.what = what

    def run(self) -> None:
        self.what()

    def value(self) -> float:
        return 0.0


def test_a_held_stream_runs_nothing_until_the_gate_opens(rig: CudaRig, backend: CudaBackend) -> None:
    import cupy

    gate = Gate(backend.gpu)
    done = cupy.zeros(1, dtype=np.int32)
    done += 0  # what is loaded at its first use must not be loaded while the stream is held
    with gate.held():
        done += 1
        time.sleep(0.05)
        event = cupy.cuda.Event()
        event.record(backend.gpu.stream)
        assert not event.done
    assert int(done[0]) == 1


def test_what_waits_by_itself_is_told_so_and_not_left_hanging(rig: CudaRig, backend: CudaBackend) -> None:
    waiting = Doing(backend.gpu.stream.synchronize)
    with pytest.raises(Waited, match="waits for the device by itself"):
        rig.timer.device(waiting, Cache.HOT, 1)
    assert rig.timer.device(subject(rig, "single_pass", 1000), Cache.HOT, 1)[0] > 0  # the stream is fine again


def test_launch_gaps_are_not_timed(rig: CudaRig) -> None:
    slow_host = Doing(lambda: time.sleep(0.01))
    assert max(rig.timer.device(slow_host, Cache.HOT, 5)) < 1e-3
    assert min(rig.timer.host(slow_host, 5)) >= 0.01


def test_a_cold_cache_is_slower_than_a_hot_one(rig: CudaRig) -> None:
    small = subject(rig, "single_pass", 4 * MIB)  # 16 MiB: far below the cache of any data-centre GPU
    rig.timer.host(small, 5)
    assert np.median(rig.timer.device(small, Cache.COLD, 20)) > np.median(rig.timer.device(small, Cache.HOT, 20))


@pytest.mark.parametrize(("strategy", "launches"), [("single_pass", 1), ("two_pass", 2), ("cub", 2), ("torch", 1)])
def test_launches_are_counted(rig: CudaRig, strategy: str, launches: int) -> None:
    if strategy in baselines() and baselines()[strategy].row.missing:
        pytest.skip(str(baselines()[strategy].row.missing))
    replay = rig.timer.replay(subject(rig, strategy, 16 * MIB))
    assert replay is not None
    assert replay.launches == launches


def test_replays_and_events_agree_on_a_long_run(rig: CudaRig) -> None:
    long = subject(rig, "single_pass", 1 << 28)
    rig.timer.host(long, 100)  # for the clocks to rise
    by_events = float(np.median(rig.timer.device(long, Cache.HOT, 20)))
    replay = rig.timer.replay(long)
    assert replay is not None
    assert by_events - 10e-6 < replay.seconds < 1.01 * by_events  # events count a launch as well


def test_the_ceiling_lies_below_the_peak_and_above_half_of_it(rig: CudaRig) -> None:
    assert rig.ceiling.peak is not None
    assert 0.5 * rig.ceiling.peak < rig.ceiling.measured < rig.ceiling.peak


def test_the_device_is_looked_at(rig: CudaRig) -> None:
    look = rig.observer.before()
    assert look.clock_mhz is not None
    assert look.temperature_c is not None
    assert look.power_w is not None
    assert rig.observer.max_clock_mhz is not None
    assert look.clock_mhz <= rig.observer.max_clock_mhz


@pytest.mark.parametrize("name", [*own_strategies(), "exact", "cupy", *baselines()])
def test_every_strategy_is_measured_with_a_right_value(rig: CudaRig, name: str) -> None:
    axes = Axes((name,), ("sum",), ("float32",), (1_000_003,), (Cache.COLD, Cache.HOT))
    for point in run(rig, axes, QUICK, Data().source):
        row = record_of(point, rig.ceiling)
        if point.outcome is Outcome.SKIPPED:
            pytest.skip(str(point.reason))
        assert point.outcome is Outcome.MEASURED, point.reason
        assert row.relative_error is not None
        assert row.kernel_ms is not None
        assert 0 < row.kernel_ms < 5


def claims() -> Iterator[tuple[str, str, str]]:
    for name, baseline in baselines().items():
        for op, dtype in sorted(baseline.row.claims):
            if name == "torch" or dtype in ("float16", "float32", "int8", "int64"):
                yield name, op, dtype


@pytest.mark.parametrize(("name", "op", "dtype"), list(claims()))
def test_peers_give_right_values_for_what_they_claim(rig: CudaRig, name: str, op: str, dtype: str) -> None:
    if baselines()[name].row.missing:
        pytest.skip(str(baselines()[name].row.missing))
    (point,) = run(rig, Axes((name,), (op,), (dtype,), (100_003,), (Cache.HOT,)), QUICK, Data().source)
    assert point.outcome is Outcome.MEASURED, point.reason


def test_a_size_beyond_the_device_is_skipped_while_the_rest_runs(rig: CudaRig) -> None:
    axes = Axes(("single_pass",), ("sum",), ("float64",), (1 << 40, 1000), (Cache.HOT,))
    large, small = run(rig, axes, QUICK, Data().source)
    assert (large.outcome, small.outcome) == (Outcome.SKIPPED, Outcome.MEASURED)
    assert "are free" in str(large.reason)


@pytest.mark.parametrize("shape", [Shape(), Shape(1000, 64, 16), Shape(7000, 1024, 7), Shape(20, 32, 1)])
@pytest.mark.parametrize("puzzle", Puzzle)
def test_puzzles_have_the_bits_of_their_model(backend: CudaBackend, puzzle: Puzzle, shape: Shape) -> None:
    solution = solve(backend, puzzle, shape)
    clusters = int(backend.gpu.arch.removeprefix("sm_")) >= CLUSTERS_SINCE
    assert solution.model is not clusters
    assert np.array(solution.values, dtype=np.float32).tobytes() == model(puzzle, shape).tobytes()
    assert all(check.passed for check in checks(solution))


def test_nothing_is_left_out_of_these_lists() -> None:
    assert set(OPS) >= {op for baseline in baselines().values() for op, _ in baseline.row.claims}
    assert set(DTYPES) >= {dtype for baseline in baselines().values() for _, dtype in baseline.row.claims}
