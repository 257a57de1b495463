"""Accuracy studies and three numbers as the child of a slot runs them, on the CPU."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.leases import lease_on
from tests.support.measurements import replace
from warpfold.app.jobs.attempt import Lease
from warpfold.contract.folders import Folders
from warpfold.contract.kinds.accuracy import AccuracyPoint, AccuracyResult
from warpfold.contract.kinds.three_numbers import ThreeNumbersResult
from warpfold.worker.execute import Kernels
from warpfold.worker.messages import Measured, News, PointBegun, Progress


@pytest.fixture(scope="module")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    return Kernels("cpu", "here:cpu", Folders((), Path(tmp_path_factory.mktemp("datasets"))), cpu_cache_bytes=8 << 20)


def asked(**spec: Any) -> Lease:
    return lease_on(json.dumps(spec), queued_ms=12.5)


def silent(news: News) -> None:
    pass


def of(result: AccuracyResult, method: str, distribution: str = "mixed") -> AccuracyPoint:
    return next(point for point in result.points if (point.method, point.distribution) == (method, distribution))


STUDY = asked(
    kind="accuracy",
    methods=["sequential", "tree", "torch", "exact"],
    distributions=["mixed", "normal"],
    sizes=[1000],
    permutations=3,
    runs=2,
    seed=42,
)


def test_every_method_on_every_array_gives_a_point_and_a_row(cpu: Kernels) -> None:
    success = cpu.run(STUDY, silent)
    result = AccuracyResult.model_validate(success.result)
    named = [(point.distribution, point.method) for point in result.points]
    assert named == [
        (distribution, method)
        for distribution in ("mixed", "normal")
        for method in ("sequential", "tree", "torch", "exact")
    ]
    assert (result.measured, result.skipped, result.failed, result.exceeded) == (6, 2, 0, 0)
    assert [(row.distribution, row.strategy) for row in success.points] == named
    assert {(row.kind, row.op, row.n, row.bytes) for row in success.points} == {("accuracy", "sum", 1000, 4000)}
    assert (result.timings.queued_ms, result.provenance.seed) == (12.5, 42)


def test_a_method_of_the_gpu_is_skipped_on_a_cpu_with_the_reason(cpu: Kernels) -> None:
    skipped = of(AccuracyResult.model_validate(cpu.run(STUDY, silent).result), "torch")
    assert skipped.outcome == "skipped"
    assert skipped.reason == "torch runs on cuda, and this slot is of cpu"
    assert (skipped.value, skipped.absolute_error, skipped.bound_verdict) == (None, None, None)


def test_the_figures_agree_with_each_other(cpu: Kernels) -> None:
    result = AccuracyResult.model_validate(cpu.run(STUDY, silent).result)
    exact, tree = of(result, "exact"), of(result, "tree")
    assert exact.correctly_rounded
    assert (exact.distinct_results, exact.repeatable) == (1, True)
    assert exact.exact == tree.exact
    for point in (exact, tree):
        assert isinstance(point.value, float)
        assert isinstance(point.exact, float)
        assert point.hex == point.value.hex()
        assert point.absolute_error == pytest.approx(abs(point.value - point.exact), rel=1e-6)
        assert point.bound_verdict == "held"


def test_the_zero_errors_of_the_report_are_those_of_a_rounded_reference(cpu: Kernels) -> None:
    tree = of(AccuracyResult.model_validate(cpu.run(STUDY, silent).result), "tree")
    assert tree.rounded_reference_error == 0.0
    assert isinstance(tree.absolute_error, float)
    assert tree.absolute_error > 0


def test_progress_counts_points_and_every_point_is_told_once(cpu: Kernels) -> None:
    heard: list[News] = []
    success = cpu.run(STUDY, heard.append)
    steps = [(news.done, news.total, news.unit) for news in heard if isinstance(news, Progress)]
    assert steps == [(k, 8, "points") for k in range(9)]
    assert tuple(news.point for news in heard if isinstance(news, Measured)) == success.points
    begun = [news.point for news in heard if isinstance(news, PointBegun)]
    assert {(row.outcome, row.reason) for row in begun} == {("failed", "the process that computed it died")}


def test_a_point_that_killed_the_child_before_stays_failed_and_all_others_are_whole(cpu: Kernels) -> None:
    first = cpu.run(STUDY, silent).points
    died = replace(first[1], outcome="failed", reason="the process that measured it died (signal 11)")
    heard: list[News] = []
    success = cpu.run(dataclasses.replace(STUDY, done=(first[0], died)), heard.append)
    result = AccuracyResult.model_validate(success.result)
    assert (result.measured, result.skipped, result.failed) == (5, 2, 1)
    assert of(result, "tree").reason == "the process that measured it died (signal 11)"
    assert of(result, "sequential").bound_verdict == "held"
    assert success.points[:2] == (first[0], died)
    assert len([news for news in heard if isinstance(news, Measured)]) == 6


def test_infinite_figures_are_json(cpu: Kernels) -> None:
    lease = asked(kind="accuracy", methods=["sequential"], distributions=["uniform"], dtypes=["float16"],
                    parameters={"uniform": {"low": 50000, "high": 60000}}, sizes=[100])  # fmt: skip
    success = cpu.run(lease, silent)
    (point,) = json.loads(json.dumps(success.result, allow_nan=False))["points"]
    assert (point["value"], point["absolute_error"], point["bound_verdict"]) == ("inf", "inf", "not_applicable")
    assert success.points[0].relative_error is None


def test_three_numbers_are_added_in_all_orders(cpu: Kernels) -> None:
    result = ThreeNumbersResult.model_validate(cpu.run(asked(kind="three_numbers"), silent).result)
    assert (result.a, result.b, result.c, result.exact, result.distinct_values) == (1e8, 1.0, -1e8, 1.0, 2)
    values = {order.expression: order.value for order in result.orders}
    assert len(values) == 12
    assert (values["(a + b) + c"], values["a + (b + c)"], values["(a + c) + b"]) == (0.0, 0.0, 1.0)


def test_three_numbers_may_be_hex_floats_of_any_float_dtype(cpu: Kernels) -> None:
    lease = asked(kind="three_numbers", a="0x1p53", b=1, c="0x1p-52", dtype="float64")
    result = ThreeNumbersResult.model_validate(cpu.run(lease, silent).result)
    assert result.exact_hex == "0x1.0000000000001p+53"
    assert result.distinct_values == 2
