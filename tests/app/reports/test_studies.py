"""Reports compare published and measured figures."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from tests.support.chart_rows import rows_of
from tests.support.measurements import POINT, replace
from tests.support.studies import RUN, accuracy_point, accuracy_result, scaling_point, scaling_result
from warpfold.app.jobs.store import Job
from warpfold.app.reports.finished import Finished
from warpfold.app.reports.report import Compared, Verdict
from warpfold.app.reports.studies.associativity import distribution
from warpfold.app.reports.studies.scaling import scaling
from warpfold.app.reports.studies.study import Study, StudyOutcome
from warpfold.app.reports.studies.throughput import throughput
from warpfold.contract.jobs import JobResult
from warpfold.contract.kinds.benchmark import BenchmarkResult
from warpfold.contract.measurement import Measurement
from warpfold.contract.states import Status


def finished(result: JobResult | None, points: Sequence[Measurement] = (), **facts: Any) -> Finished:
    job = {"status": Status.SUCCEEDED, "error": None, "reason": None, "finished_at": datetime.now(UTC), **facts}
    return Finished(cast(Job, SimpleNamespace(**job)), None, result, tuple(points), ())


def row(outcome: StudyOutcome, case: str, quantity: str) -> Compared:
    (row,) = (row for row in outcome.compared if (row.case, row.quantity) == (case, quantity))
    return row


def benchmark(**times: dict[int, float]) -> Study:
    """A run of task 1's throughput: milliseconds by strategy and size, in elements of 4 bytes."""
    points = [
        replace(POINT, strategy=name, n=n, bytes=4 * n, kernel_ms=ms, flags=(), peak_gbps=4800.0)
        for name, sizes in times.items()
        for n, ms in sizes.items()
    ]
    facts = {"cases": 1, "measured": 1, "skipped": 0, "failed": 0, "suspect": 0, "ceiling_gbps": 4650.0}
    result = BenchmarkResult.model_validate({**facts, "peak_gbps": 4800.0, **RUN})
    return Study({"gpu": finished(result, points)}, {"cpu": "it measures numpy on cpu"})


def test_times_of_another_machine_are_set_in_proportion() -> None:
    outcome = throughput(benchmark(two_pass={10**8: 0.165}, thrust={10**8: 0.121}))
    time = row(outcome, "n = 100,000,000", "custom time")
    assert (time.published, time.measured, time.verdict) == ("1.5829", "0.165", Verdict.OTHER_MACHINE)
    assert (time.why, time.machine) == ("9.59× as fast as on the T4", "NVIDIA H200")
    speed = row(outcome, "n = 100,000,000", "custom throughput")
    assert (speed.measured, speed.why) == ("2,420", "50.5 % of peak")
    assert row(outcome, "n = 100,000,000", "custom against Thrust").measured == "0.733×"


def test_the_share_of_the_peak_stands_beside_the_t4s() -> None:
    outcome = throughput(benchmark(two_pass={10**8: 0.165}))
    share = row(outcome, "summary", "share of the device's peak")
    assert (share.published, share.measured) == ("79.0 (of 320 GB/s)", "50.5 (of 4,800 GB/s)")
    assert any("252.71 GB/s are 79 % of its peak of 320 GB/s" in finding.text for finding in outcome.findings)


def test_the_reports_lines_stand_beside_ours() -> None:
    chart = throughput(benchmark(two_pass={10**8: 0.165})).charts[0]
    rows = [row for row in rows_of(chart) if (row["series"], row["x"]) == ("two_pass", 10**8)]
    assert [(row["kind"], round(row["y"], 2)) for row in rows] == [("published", 252.71), ("measured", 2424.24)]


def test_a_row_where_thrust_is_faster_than_ours_is_told() -> None:
    slower = throughput(benchmark(single_pass={10**3: 0.02, 10**8: 0.09}, thrust={10**3: 0.01, 10**8: 0.12}))
    assert [(f.verdict, f.text) for f in slower.findings if "against Thrust" in f.text] == [
        (Verdict.DIFFERS, "single_pass against Thrust: 0.5× at 1,000, 1.33× at 100,000,000. It is slower at 1,000.")
    ]
    faster = throughput(benchmark(single_pass={10**8: 0.09}, thrust={10**8: 0.12}))
    assert any(finding.text.endswith("It is faster at every row.") for finding in faster.findings)


def test_what_was_left_out_says_why() -> None:
    outcome = throughput(benchmark(two_pass={10**8: 0.165}))
    numpy = row(outcome, "summary", "NumPy, highest throughput, one thread")
    assert (numpy.measured, numpy.verdict) == (None, Verdict.MISSING)
    assert numpy.why == "left out: it measures numpy on cpu"
    assert row(outcome, "n = 1,000", "custom time").why == "not measured at 1,000 elements"


def test_a_failed_job_is_the_reason_for_each_of_its_rows() -> None:
    outcome = throughput(Study({"gpu": finished(None, status=Status.FAILED, error="No GPU.")}, {}))
    assert {row.verdict for row in outcome.compared} == {Verdict.MISSING}
    assert row(outcome, "n = 1,000", "custom time").why == "gpu failed: No GPU."


def test_speedups_beyond_the_number_of_gpus_are_corrected() -> None:
    points = [scaling_point(1, 10**9, 0.9, 0.9), scaling_point(2, 10**9, 0.5, 0.9)]
    outcome = scaling(Study({"strong": finished(scaling_result(points))}, {}))
    speedup = row(outcome, "n = 1,000,000,000", "speed-up")
    assert (speedup.published, speedup.measured, speedup.verdict) == ("47.52×", "1.8×", Verdict.CORRECTED)
    assert row(outcome, "n = 1,000,000,000", "one GPU").verdict is Verdict.OTHER_MACHINE
    assert speedup.machine == "2 × NVIDIA H200"
    assert "fault of timing" in outcome.findings[0].text


def test_a_suspect_figure_of_ours_is_no_headline() -> None:
    points = [scaling_point(1, 10**6, 0.9, 0.9), scaling_point(2, 10**6, 0.1, 0.9, suspect="9× on 2 GPUs")]
    outcome = scaling(Study({"strong": finished(scaling_result(points))}, {}))
    speedup = row(outcome, "n = 1,000,000", "speed-up")
    assert (speedup.verdict, speedup.why) == (Verdict.DIFFERS, "suspect: 9× on 2 GPUs")
    assert outcome.charts == ()


def test_a_size_that_was_skipped_says_why() -> None:
    nothing = {"outcome": "skipped", "reason": "too large", "total_ms": None, "speedup": None}
    skipped = scaling_point(2, 10**9, 1.0, 1.0).model_copy(update=nothing)
    outcome = scaling(Study({"strong": finished(scaling_result([skipped]))}, {}))
    assert row(outcome, "n = 1,000,000,000", "two GPUs").why == "too large"


def test_errors_of_the_known_array_agree_as_the_report_measured_them() -> None:
    outcome = distribution("pathological")(_sums(accuracy_point("sequential", 1000, 333.0)))
    error = row(outcome, "n = 1,000", "sequential, absolute error")
    assert (error.published, error.verdict) == ("336", Verdict.AGREES)
    assert error.measured == "333 (as the report measures: 336)"


def test_an_error_of_zero_is_corrected_where_there_is_one() -> None:
    outcome = distribution("pathological")(_sums(accuracy_point("sorted_ascending", 1000, 3.0)))
    error = row(outcome, "n = 1,000", "sorted, absolute error")
    assert (error.published, error.verdict) == ("0", Verdict.CORRECTED)
    assert error.why is not None
    assert error.why.startswith("0 only against a rounded reference")


def test_another_error_of_the_known_array_differs() -> None:
    outcome = distribution("pathological")(_sums(accuracy_point("sequential", 1000, 33.0)))
    assert row(outcome, "n = 1,000", "sequential, absolute error").verdict is Verdict.DIFFERS


def test_errors_of_unknown_random_numbers_are_compared_in_size() -> None:
    point = accuracy_point("sequential", 1000, 2e-5, distribution="normal", rounded_reference_error=2e-5)
    outcome = distribution("normal")(_sums(point))
    error = row(outcome, "n = 1,000", "sequential, absolute error")
    assert error.verdict is Verdict.OTHER_DATA
    assert error.why is not None
    assert error.why.startswith("of the same size")


def test_a_bound_that_did_not_hold_is_told() -> None:
    outcome = distribution("pathological")(_sums(accuracy_point("tree", 1000, 9.0, bound_verdict="exceeded")))
    assert any(
        finding.verdict is Verdict.DIFFERS and "It was exceeded by tree at 1,000" in finding.text
        for finding in outcome.findings
    )


def _sums(*points: Any) -> Study:
    return Study({"sizes": finished(accuracy_result(points))}, {})
