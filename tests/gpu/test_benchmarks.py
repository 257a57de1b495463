"""A GPU as the thing measured: its clocks, its ceiling, its peers, its puzzles."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from warpfold.kernels.bench.axes import Axes, Cache
from warpfold.kernels.bench.contenders import FLOATS, SUMS, contenders
from warpfold.kernels.bench.data import Data
from warpfold.kernels.bench.engine import run
from warpfold.kernels.bench.record import record_of
from warpfold.kernels.bench.stopping import Rule
from warpfold.kernels.bench.workload import Workload
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.bench import ceiling as ceiling_module
from warpfold.kernels.cuda.bench.blocking_kernel import BlockingKernel, Waited, hold_unit
from warpfold.kernels.cuda.bench.reader import SHAPES, patternless, read_kernel, reading
from warpfold.kernels.cuda.bench.target import CudaTarget
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import LaunchShape
from warpfold.kernels.cuda.gpu.recorded import Prepared
from warpfold.kernels.cuda.puzzles import CLUSTERS_SINCE
from warpfold.kernels.cuda.strategies.registry import baselines, own_strategies
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS
from warpfold.kernels.puzzles import ClusterShape, Puzzle, checks, solve
from warpfold.kernels.puzzles.solve import model
from warpfold.kernels.studies.outcome import Outcome
from warpfold.kernels.studies.shapes import CaseShape

QUICK = Rule(target_rse=0.05, min_samples=5, max_samples=50, time_limit_s=0.5)
MIB = 1 << 20


@pytest.fixture(scope="module")
def target(backend: CudaBackend) -> Iterator[CudaTarget]:
    made = CudaTarget(backend)
    with made.active():
        yield made


def workload(target: CudaTarget, strategy: str, n: int, op: str = "sum", dtype: str = "float32") -> Workload:
    return target.load(Data().source(dtype, n)).workload(op, strategy)


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


def test_a_held_stream_runs_nothing_until_the_gate_opens(target: CudaTarget, backend: CudaBackend) -> None:
    import cupy

    blocking_kernel = BlockingKernel(backend.gpu)
    done = cupy.zeros(1, dtype=np.int32)
    done += 0  # what is loaded at its first use must not be loaded while the stream is held
    with blocking_kernel.held():
        done += 1
        time.sleep(0.05)
        event = cupy.cuda.Event()
        event.record(backend.gpu.stream)
        assert not event.done
    assert int(done[0]) == 1


def test_what_waits_by_itself_is_told_so_and_not_left_hanging(target: CudaTarget, backend: CudaBackend) -> None:
    waiting = Doing(backend.gpu.stream.synchronize)
    with pytest.raises(Waited, match="waits for the device by itself"):
        target.timer.device(waiting, Cache.HOT, 1)
    assert target.timer.device(workload(target, "single_pass", 1000), Cache.HOT, 1)[0] > 0  # the stream is fine again


def test_launch_gaps_are_not_timed(target: CudaTarget) -> None:
    gap = 0.1  # far longer than what the device does here, even if others use it too
    slow_host = Doing(lambda: time.sleep(gap))
    assert max(target.timer.device(slow_host, Cache.HOT, 3)) < gap
    assert min(target.timer.host(slow_host, 3)) >= gap


def test_all_that_the_device_does_is_timed(target: CudaTarget, backend: CudaBackend) -> None:
    import cupy

    busy_s = 2e-3
    kernel = backend.gpu.kernel(hold_unit(), "hold")
    shut = cupy.zeros(2, dtype=np.uint32)
    waiting = Doing(lambda: kernel(1, 1, (shut[:1], shut[1:], np.uint64(int(busy_s * 1e9)))))
    replay = target.timer.replay(waiting)
    assert replay is not None
    assert replay.launches == 1
    assert (
        min(*target.timer.device(waiting, Cache.HOT, 3), *target.timer.host(waiting, 3), replay.seconds) > 0.99 * busy_s
    )


def test_the_caches_are_flushed_before_every_cold_run_and_before_no_hot_one(
    target: CudaTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(target.timer, "flush", lambda: done.append("flush"))
    running = Doing(lambda: done.append("run"))
    target.timer.device(running, Cache.COLD, 2)
    target.timer.device(running, Cache.HOT, 2)
    assert done == ["flush", "run", "flush", "run", "run", "run"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{read_kernel(shape)} {shape.threads}")
def test_every_reading_loop_reads_all_of_the_array(backend: CudaBackend, shape: LaunchShape) -> None:
    with backend.gpu.active():
        array = patternless(backend.gpu, 16 * 1_000_003)
        read = reading(backend.gpu, array, shape)
        assert not sees_top_bit(read)
        for at in (0, array.size // 2, array.size - 1):
            array[at] |= np.uint32(1 << 31)
            assert sees_top_bit(read), at
            array[at] &= np.uint32((1 << 31) - 1)


def sees_top_bit(read: Prepared) -> bool:
    """Whether a reading loop met a word with its top bit set, the only thing that it tells."""
    (call,) = read.launches
    never = call.args[-1]
    never.fill(0)
    read.start()
    return bool(never.get()[0])


@pytest.mark.parametrize(("strategy", "launches"), [("single_pass", 1), ("two_pass", 2), ("cub", 2), ("torch", 1)])
def test_launches_are_counted(target: CudaTarget, strategy: str, launches: int) -> None:
    if strategy in baselines() and baselines()[strategy].missing:
        pytest.skip(str(baselines()[strategy].missing))
    replay = target.timer.replay(workload(target, strategy, 16 * MIB))
    assert replay is not None
    assert replay.launches == launches


def test_the_ceiling_is_of_the_best_loop_and_gives_its_memory_back(
    target: CudaTarget, backend: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cupy

    passes = iter([3.0, 2.0, 5.0, *[4.0] * len(SHAPES)])  # seconds
    read: list[int] = []

    def took(gpu: Gpu, loop: Prepared) -> list[float]:
        read.append(loop.launches[0].args[0].nbytes)
        return [next(passes)] * 9

    monkeypatch.setattr(ceiling_module, "_passes", took)
    pool = cupy.get_default_memory_pool()
    with backend.gpu.active():
        pool.free_all_blocks()
        held = pool.total_bytes()
        ceiling = ceiling_module.measure_ceiling(backend.gpu, target.observer, 1 << 20)
    assert len(read) == len(SHAPES)
    assert ceiling.measured == read[0] / 2.0
    assert read[0] >= 16 << 20
    assert pool.total_bytes() == held
    assert ceiling.peak == target.observer.memory_peak


def test_the_device_is_looked_at(target: CudaTarget) -> None:
    look = target.observer.before()
    assert look.clock_mhz is not None
    assert look.temperature_c is not None
    assert look.power_w is not None
    assert target.observer.max_clock_mhz is not None
    assert look.clock_mhz <= target.observer.max_clock_mhz


@pytest.mark.parametrize("name", [*own_strategies(), "exact", "cupy", *baselines()])
def test_every_strategy_is_measured_with_a_right_value(target: CudaTarget, name: str) -> None:
    axes = Axes((name,), ("sum",), ("float32",), (1_000_003,), (Cache.COLD, Cache.HOT))
    for point in run(target, axes, QUICK, Data().source):
        row = record_of(point)
        if point.outcome is Outcome.SKIPPED:
            pytest.skip(str(point.reason))
        assert point.outcome is Outcome.MEASURED, point.reason
        assert row.relative_error is not None
        assert row.kernel_ms is not None
        assert row.kernel_ms > 0


def claims() -> Iterator[tuple[str, str, str]]:
    for name, baseline in baselines().items():
        for op, dtype in sorted(baseline.claims):
            if name == "torch" or dtype in ("float16", "float32", "int8", "int64"):
                yield name, op, dtype


@pytest.mark.parametrize(("name", "op", "dtype"), list(claims()))
def test_peers_give_right_values_for_what_they_claim(target: CudaTarget, name: str, op: str, dtype: str) -> None:
    if baselines()[name].missing:
        pytest.skip(str(baselines()[name].missing))
    (point,) = run(target, Axes((name,), (op,), (dtype,), (100_003,), (Cache.HOT,)), QUICK, Data().source)
    assert point.outcome is Outcome.MEASURED, point.reason


SWEPT = [
    CaseShape.matrix(20_011, 2, 1), CaseShape.matrix(2003, 100, 1), CaseShape.matrix(3, 70_001, 1),
    CaseShape.matrix(20_011, 2, 0), CaseShape.matrix(2003, 100, 0), CaseShape.matrix(3, 70_001, 0),
    CaseShape.cut(200_003, 5), CaseShape.cut(200_003, 3000),
    CaseShape.table(200_003, 70, "random"), CaseShape.table(200_003, 70, "sorted"),
    CaseShape.table(200_003, 150_000, "random"), CaseShape.table(200_003, 150_000, "sorted"),
]  # fmt: skip


@pytest.mark.parametrize("shape", SWEPT, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_shapes_are_measured_by_all_contenders_with_right_values(
    target: CudaTarget, shape: CaseShape, dtype: str
) -> None:
    names = tuple(row.strategy for row in contenders(shape.by, "cuda"))
    outcomes = {}
    for point in run(target, Axes(names, SUMS, (dtype,), (shape,), (Cache.COLD,)), QUICK, Data().source, seed=1):
        case, row = point.case, record_of(point)
        outcomes[case.strategy, case.op] = point.outcome
        assert point.outcome is not Outcome.FAILED, (case, point.reason)
        if case.strategy == "exact":
            assert (point.relative_error, point.distinct_values) == (0.0, 1)
        if point.outcome is Outcome.MEASURED:
            assert row.kernel_ms is not None
            assert row.kernel_ms > 0
            assert (row.rows, row.columns, row.axis) == (shape.rows, shape.columns, shape.axis)
    assert outcomes["exact", "sum"] is Outcome.MEASURED
    assert outcomes["exact", "mean"] is Outcome.MEASURED


def test_a_shape_beyond_the_device_is_skipped_while_the_rest_runs(target: CudaTarget) -> None:
    shapes = (CaseShape.table(1 << 40, 10, "random"), CaseShape.matrix(10, 10, 1))
    large, small = run(target, Axes(("exact",), ("sum",), ("float64",), shapes, (Cache.HOT,)), QUICK, Data().source)
    assert (large.outcome, small.outcome) == (Outcome.SKIPPED, Outcome.MEASURED)


def test_a_size_beyond_the_device_is_skipped_while_the_rest_runs(target: CudaTarget) -> None:
    axes = Axes(("single_pass",), ("sum",), ("float64",), (1 << 40, 1000), (Cache.HOT,))
    large, small = run(target, axes, QUICK, Data().source)
    assert (large.outcome, small.outcome) == (Outcome.SKIPPED, Outcome.MEASURED)
    assert "are free" in str(large.reason)


@pytest.mark.parametrize(
    "shape", [ClusterShape(), ClusterShape(1000, 64, 16), ClusterShape(7000, 1024, 7), ClusterShape(20, 32, 1)]
)
@pytest.mark.parametrize("puzzle", Puzzle)
def test_puzzles_have_the_bits_of_their_model(backend: CudaBackend, puzzle: Puzzle, shape: ClusterShape) -> None:
    solution = solve(backend, puzzle, shape)
    clusters = int(backend.gpu.arch.removeprefix("sm_")) >= CLUSTERS_SINCE
    assert solution.model is not clusters
    assert np.array(solution.values, dtype=np.float32).tobytes() == model(puzzle, shape).tobytes()
    assert all(check.passed for check in checks(solution))


def test_nothing_is_left_out_of_these_lists() -> None:
    assert set(OPS) >= {op for baseline in baselines().values() for op, _ in baseline.claims}
    assert set(DTYPES) >= {dtype for baseline in baselines().values() for _, dtype in baseline.claims}
