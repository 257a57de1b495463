"""Studies on the CPU: what they measure, and what becomes of cases that cannot be."""

import math
from dataclasses import replace

import numpy as np
import pytest

from warpfold.kernels.accuracy import (
    AccuracyAxes,
    AccuracyCase,
    AccuracyFigures,
    BoundVerdict,
    StudiedCase,
    arrays,
    methods_on,
)
from warpfold.kernels.accuracy.study import Repeats, run
from warpfold.kernels.backend import Progress
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import CudaError, OutOfMemory
from warpfold.kernels.query import Answer, Query
from warpfold.kernels.source import GeneratedSource
from warpfold.kernels.studies.outcome import Outcome

AXES = AccuracyAxes(("sequential", "tree", "numpy", "exact"), ("sum",), ("normal",), ("float32",), (1000,))
TWICE = Repeats(permutations=3, runs=2)


@pytest.fixture(scope="module")
def cpu() -> CpuBackend:
    return CpuBackend()


def source(distribution: str, dtype: str, n: int) -> GeneratedSource:
    return GeneratedSource(distribution, n, 42, dtype_named(dtype))


def figures(point: StudiedCase) -> AccuracyFigures:
    assert point.measured is not None, point.reason
    return point.measured


def test_cases_come_in_order_and_each_is_begun_before_it_is_computed(cpu: CpuBackend) -> None:
    begun: list[AccuracyCase] = []
    for point in run(cpu, AXES, source, TWICE, begin=begun.append):
        assert begun[-1] == point.case
    assert begun == list(AXES.cases())


def test_all_methods_of_a_cpu_keep_their_bounds_on_all_distributions_and_dtypes(cpu: CpuBackend) -> None:
    distributions = ("normal", "uniform", "lognormal", "all_exponents", "ill_conditioned")
    dtypes = ("float16", "bfloat16", "float32", "float64")
    axes = AccuracyAxes(methods_on("cpu"), ("sum", "mean", "dot", "norm2"), distributions, dtypes, (1003,))
    points = list(run(cpu, axes, source, Repeats(permutations=1, runs=1)))
    assert len(points) == 11 * 4 * 5 * 4
    assert {point.outcome for point in points} == {Outcome.MEASURED}
    assert [point.case for point in points if figures(point).bound_verdict is BoundVerdict.EXCEEDED] == []
    exact = [figures(point) for point in points if point.case.method == "exact"]
    assert all(point.correctly_rounded and point.distinct_results == 1 for point in exact)


def test_products_are_compared_where_they_stay_in_range(cpu: CpuBackend) -> None:
    axes = AccuracyAxes(methods_on("cpu"), ("prod",), ("uniform",), ("float32", "float64"), (200,))
    near_one = {"low": 0.9, "high": 1.1}

    def uniform(distribution: str, dtype: str, n: int) -> GeneratedSource:
        return replace(source(distribution, dtype, n), parameters=near_one)

    points = list(run(cpu, axes, uniform, TWICE))
    skipped = {point.case.method for point in points if point.outcome is Outcome.SKIPPED}
    assert skipped == {"kahan", "neumaier", "exact"}
    assert {figures(point).bound_verdict for point in points if point.measured} == {BoundVerdict.HELD}


def test_the_published_sums_of_the_pathological_data_are_reproduced(cpu: CpuBackend) -> None:
    methods = ("sequential", "reverse", "tree", "sorted_ascending")
    axes = AccuracyAxes(methods, ("sum",), ("pathological",), ("float32",), (1000, 10_000, 100_000, 1_000_000))
    published = {1000: 336, 10_000: 3336, 100_000: 33_336, 1_000_000: 333_336}  # 3.36e2, 3.34e3, 3.33e4, 3.33e5
    for point in run(cpu, axes, source, Repeats(0, 1)):
        error = figures(point).rounded_reference_error
        expected = 0 if point.case.method == "sorted_ascending" else published[point.case.n]
        assert abs(error - expected) <= 8, point.case


def test_results_depend_on_the_order_but_not_on_the_run(cpu: CpuBackend) -> None:
    points = {point.case.method: figures(point) for point in run(cpu, AXES, source, Repeats(8, 3))}
    assert (points["sequential"].distinct_results or 0) > 1
    assert points["exact"].distinct_results == 1
    assert all(point.repeatable for point in points.values())


def test_nothing_is_said_of_orders_and_runs_that_were_not_tried(cpu: CpuBackend) -> None:
    for point in run(cpu, AXES, source, Repeats(permutations=0, runs=1)):
        assert (figures(point).distinct_results, figures(point).repeatable) == (None, None)


def test_the_reference_is_numpy_in_float64_with_an_error_of_its_own(cpu: CpuBackend) -> None:
    axes = replace(AXES, distributions=("mixed",), sizes=(100_000,))
    x = source("mixed", "float32", 100_000).read(0, 100_000)
    for point in run(cpu, axes, source, Repeats(0, 1)):
        result = figures(point)
        assert result.reference == float(np.sum(x.astype(np.float64)))
        assert result.reference_error == abs(result.value - result.reference)
        assert result.reference_own_error < 1e-3
        assert result.exact == math.fsum(x.tolist())


def test_what_a_slot_cannot_run_is_skipped_and_the_rest_goes_on(cpu: CpuBackend) -> None:
    axes = replace(AXES, methods=("torch", "cub", "tree"))
    points = list(run(cpu, axes, source, TWICE))
    assert [point.outcome for point in points] == [Outcome.SKIPPED, Outcome.SKIPPED, Outcome.MEASURED]
    assert points[0].reason == "torch runs on cuda, and this slot is of cpu"


def test_an_array_beyond_the_memory_is_skipped_with_both_numbers(
    cpu: CpuBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def require(needed: int, what: str) -> None:
        if needed > 100_000:
            raise OutOfMemory(f"{what} needs {needed:,} bytes")

    monkeypatch.setattr(arrays, "require", require)
    points = list(run(cpu, replace(AXES, sizes=(10_000, 100), methods=("tree",)), source, TWICE))
    assert [point.outcome for point in points] == [Outcome.SKIPPED, Outcome.MEASURED]
    assert points[0].reason == "an accuracy study of 10,000 elements of float32 needs 480,000 bytes"


def test_known_points_are_given_as_they_are(cpu: CpuBackend) -> None:
    first = next(AXES.cases())
    known = {first: StudiedCase(first, Outcome.FAILED, "it died")}
    begun: list[AccuracyCase] = []
    points = list(run(cpu, AXES, source, TWICE, known=known, begin=begun.append))
    assert points[0] is known[first]
    assert begun == [point.case for point in points[1:]]


class Broken(CpuBackend):
    """A device on which reductions raise, once it is open."""

    error: Exception | None = None

    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        if self.error is None:
            return super().aggregate(query, progress)
        raise self.error


def broken_by(error: Exception) -> Broken:
    device = Broken()
    device.error = error
    return device


def test_what_goes_wrong_with_one_method_stays_with_it() -> None:
    points = list(run(broken_by(ValueError("no such bits")), AXES, source, TWICE))
    assert [point.outcome for point in points] == [Outcome.MEASURED] * 2 + [Outcome.FAILED] * 2
    assert points[2].reason == "ValueError: no such bits"


def test_after_an_error_of_the_gpu_its_point_is_given_and_the_error_raised() -> None:
    points = run(broken_by(CudaError("an illegal address")), AXES, source, TWICE)
    seen = [next(points).outcome for _ in range(3)]
    assert seen == [Outcome.MEASURED, Outcome.MEASURED, Outcome.FAILED]
    with pytest.raises(CudaError, match="illegal address"):
        next(points)
