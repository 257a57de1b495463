import math
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest

from tests.support.kernels.scripted import CEILING, ScriptedTarget, ScriptedTimer
from warpfold.kernels.bench.axes import Axes, Cache, Case
from warpfold.kernels.bench.ceiling import Ceiling, CeilingGauge
from warpfold.kernels.bench.engine import Point, run
from warpfold.kernels.bench.flags import Flag
from warpfold.kernels.bench.stopping import Ending, Rule
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import CudaError, InvalidInput, KernelError, OutOfMemory, Unavailable
from warpfold.kernels.source import GeneratedSource, Source
from warpfold.kernels.studies.outcome import Outcome

RULE = Rule(min_samples=20, time_limit_s=1.0)
RIGHT = {("sum", "exact"): 10.0, ("norm1", "exact"): 10.0}


def source_of(dtype: str, n: int) -> Source:
    return GeneratedSource("uniform", n, 1, dtype_named(dtype))


def axes(*strategies: str, sizes: tuple[int, ...] = (1000,), caches: tuple[Cache, ...] = (Cache.COLD,)) -> Axes:
    return Axes(strategies, ("sum",), ("float32",), sizes, caches)


def points(target: ScriptedTarget, of: Axes, rule: Rule = RULE) -> list[Point]:
    return list(run(target, of, rule, source_of))


def test_a_measured_point_carries_all_that_was_seen() -> None:
    (point,) = points(ScriptedTarget({**RIGHT, ("sum", "fast"): 10.0}), axes("fast"))
    assert point.outcome is Outcome.MEASURED
    assert point.measured is not None
    assert point.measured.device.median == 1e-3
    assert point.measured.ending is Ending.CONVERGED
    assert point.measured.host.median == 2e-3
    assert point.measured.issue_s == 1.5e-3
    assert point.measured.replay is not None
    assert point.measured.replay.launches == 2
    assert point.measured.read_bytes == 4000
    assert (point.value, point.relative_error, point.distinct_values) == (10.0, 0.0, 1)
    assert point.flags == frozenset()


def test_the_cache_is_as_the_case_says() -> None:
    timer = ScriptedTimer(seconds=lambda cache: 2e-3 if cache is Cache.COLD else 1e-3)
    target = ScriptedTarget({**RIGHT, ("sum", "fast"): 10.0}, timer)
    cold, hot = points(target, axes("fast", caches=(Cache.COLD, Cache.HOT)))
    assert cold.measured is not None
    assert hot.measured is not None
    assert (cold.measured.device.median, hot.measured.device.median) == (2e-3, 1e-3)
    assert {cache for cache, _ in timer.asked} == {Cache.COLD, Cache.HOT}


def test_a_ceiling_that_is_not_trusted_is_measured_again_only_for_points_that_have_a_share_of_it() -> None:
    measured: list[Ceiling] = []

    def measure() -> Ceiling:
        measured.append(replace(CEILING, trusted=False))
        return measured[-1]

    gauge = CeilingGauge(measure)

    class Busy(ScriptedTarget):
        def __getattribute__(self, name: str) -> Any:
            return gauge.read() if name == "ceiling" else super().__getattribute__(name)

    target = Busy({**RIGHT, ("sum", "fast"): 10.0})
    hot = points(target, axes("fast", sizes=(1000, 2000, 3000), caches=(Cache.HOT,)))
    assert [Flag.NO_CEILING in point.flags for point in hot] == [False, False, False]
    at_once = len(measured)
    assert at_once == 3
    cold = points(target, axes("fast", sizes=(1000, 2000)))
    assert [Flag.NO_CEILING in point.flags for point in cold] == [True, True]
    assert len(measured) == at_once + 2


def test_sampling_goes_on_until_the_error_is_small_enough() -> None:
    times = cycle([0.9e-3, 1.1e-3])
    (point,) = points(
        ScriptedTarget({**RIGHT, ("sum", "fast"): 10.0}, ScriptedTimer(lambda _: next(times))), axes("fast")
    )
    assert point.measured is not None
    assert point.measured.device.rse <= RULE.target_rse
    assert 400 <= point.measured.device.samples <= 400 + 51  # looked at once a batch


def test_what_does_not_converge_says_so() -> None:
    times = cycle([1e-3, 9e-3])
    target = ScriptedTarget({**RIGHT, ("sum", "fast"): 10.0}, ScriptedTimer(lambda _: next(times)))
    (point,) = points(target, axes("fast"), Rule(max_samples=100, time_limit_s=1.0))
    assert point.measured is not None
    assert point.measured.device.samples == 100
    assert point.flags == {Flag.UNCONVERGED}


def test_an_impossible_figure_is_kept_and_flagged() -> None:
    target = ScriptedTarget({**RIGHT, ("sum", "fast"): 10.0}, ScriptedTimer(lambda _: 1e-9))
    (point,) = points(target, axes("fast"))
    assert point.outcome is Outcome.MEASURED
    assert Flag.SUSPECT in point.flags


@pytest.mark.parametrize(
    "error", [InvalidInput("not claimed"), Unavailable("PyTorch is not installed"), OutOfMemory("too large")]
)
def test_what_cannot_be_run_here_is_skipped_with_the_reason_while_the_rest_runs(error: KernelError) -> None:
    target = ScriptedTarget({**RIGHT, ("sum", "a"): 10.0, ("sum", "b"): error, ("sum", "c"): 10.0})
    a, b, c = points(target, axes("a", "b", "c"))
    assert (a.outcome, b.outcome, c.outcome) == (Outcome.MEASURED, Outcome.SKIPPED, Outcome.MEASURED)
    assert b.reason == str(error)
    assert b.measured is None


def test_what_goes_wrong_is_failed_with_the_reason_while_the_rest_runs() -> None:
    target = ScriptedTarget({**RIGHT, ("sum", "a"): RuntimeError("a peer's own error"), ("sum", "b"): 10.0})
    a, b = points(target, axes("a", "b"))
    assert (a.outcome, a.reason) == (Outcome.FAILED, "RuntimeError: a peer's own error")
    assert b.outcome is Outcome.MEASURED


def test_a_wrong_value_fails_the_point_and_has_no_speed() -> None:
    target = ScriptedTarget({**RIGHT, ("sum", "wrong"): 10.1})
    (point,) = points(target, axes("wrong"))
    assert point.outcome is Outcome.FAILED
    assert point.reason == "wrong value: sum gave 10.1, and 10.0 is right"
    assert point.measured is None


def test_a_rounding_error_is_reported() -> None:
    rounded = math.nextafter(10.0, 11.0)
    (point,) = points(ScriptedTarget({**RIGHT, ("sum", "rounded"): rounded}), axes("rounded"))
    assert point.relative_error == (rounded - 10.0) / 10.0


def test_results_that_change_from_run_to_run_are_counted() -> None:
    turns = cycle([10.0, math.nextafter(10.0, 11.0)])
    (point,) = points(ScriptedTarget({**RIGHT, ("sum", "atomic"): turns}), axes("atomic"))
    assert point.distinct_values == 2


def test_data_are_brought_to_the_device_once_for_all_strategies() -> None:
    target = ScriptedTarget({**RIGHT, ("sum", "a"): 10.0, ("sum", "b"): 10.0})
    points(target, axes("a", "b", sizes=(10, 20), caches=(Cache.COLD, Cache.HOT)))
    assert target.loads == [("float32", 10), ("float32", 20)]


def test_data_too_large_skip_their_cases_and_no_others() -> None:
    target = ScriptedTarget(
        {**RIGHT, ("sum", "a"): 10.0, ("sum", "b"): 10.0}, refuse={20: OutOfMemory("it has 1.0 GB")}
    )
    measured = points(target, axes("a", "b", sizes=(20, 10)))
    assert [point.outcome for point in measured] == [Outcome.SKIPPED] * 2 + [Outcome.MEASURED] * 2
    assert measured[0].reason == "it has 1.0 GB"
    assert target.loads == [("float32", 20), ("float32", 10)]


def test_a_cuda_error_fails_its_point_and_ends_the_process_work() -> None:
    target = ScriptedTarget({**RIGHT, ("sum", "a"): 10.0, ("sum", "bad"): CudaError("misaligned address")})
    running = run(target, axes("a", "bad", "a2"), RULE, source_of)
    assert next(running).outcome is Outcome.MEASURED
    broken = next(running)
    assert (broken.outcome, broken.reason) == (Outcome.FAILED, "misaligned address")
    with pytest.raises(CudaError):
        next(running)


def test_the_rest_goes_on_from_what_is_done() -> None:
    target = ScriptedTarget({**RIGHT, ("sum", "a"): 10.0, ("sum", "b"): 10.0})
    done = {Case("a", "sum", "float32", 1000, Cache.COLD)}
    (point,) = run(target, axes("a", "b"), RULE, source_of, done=done)
    assert point.case.strategy == "b"
