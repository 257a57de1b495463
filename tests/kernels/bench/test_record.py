from dataclasses import asdict, replace

import pytest

from tests.support.kernels.scripted import CEILING, ScriptedTarget, ScriptedTimer
from warpfold.kernels.bench.axes import Axes, Cache
from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.bench.engine import Point, run
from warpfold.kernels.bench.record import Record, case_of, record_of
from warpfold.kernels.bench.stopping import Rule
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.source import GeneratedSource


def point(target: ScriptedTarget) -> Point:
    axes = Axes(("fast",), ("sum",), ("float32",), (1_000_000,), (Cache.COLD,))
    (record,) = run(target, axes, Rule(), lambda dtype, n: GeneratedSource("uniform", n, 0, dtype_named(dtype)))
    return record


def target(value: float | Unavailable = 5e5, seconds: float = 1e-5) -> ScriptedTarget:
    script = {("sum", "exact"): 5e5, ("norm1", "exact"): 5e5, ("sum", "fast"): value}
    return ScriptedTarget(script, ScriptedTimer(lambda _: seconds))


def test_throughput_is_derived_from_the_declared_bytes() -> None:
    record = record_of(point(target()))
    assert record.bytes == 4_000_000
    assert record.kernel_ms == pytest.approx(0.01, rel=1e-15)
    assert record.gbps == pytest.approx(400.0, rel=1e-12)
    assert record.percent_of_ceiling == pytest.approx(40.0, rel=1e-12)
    assert record.percent_of_peak == pytest.approx(20.0, rel=1e-12)
    assert record.counts


def test_a_row_is_made_of_plain_values() -> None:
    row = asdict(record_of(point(target())))
    kept = (str, int, float, tuple, type(None))
    assert all(type(value) in kept for value in row.values())
    assert row["value"] == "500000.0"
    assert row["temperature_c"] == 40.0
    assert (row["launches"], row["replay_ms"], row["issue_ms"]) == (2, 0.5, 1.5)


def test_a_skipped_case_has_a_reason_and_no_figures() -> None:
    record = record_of(point(target(Unavailable("no compiler"))))
    assert (record.outcome, record.reason) == ("skipped", "no compiler")
    assert record.kernel_ms is None
    assert record.gbps is None
    assert not record.counts


def test_a_suspect_row_does_not_count() -> None:
    record = record_of(point(target(seconds=1e-7)))
    assert record.flags == ("suspect",)
    assert not record.counts


def test_the_case_of_a_row_is_the_one_measured() -> None:
    measured = point(target())
    assert case_of(record_of(measured)) == measured.case


def test_a_row_reads_back_from_its_values() -> None:
    record = record_of(point(target()))
    assert Record(**asdict(record)) == record


@pytest.mark.parametrize(
    ("ceiling", "caches", "share"),
    [
        (CEILING, Cache.COLD, 40.0),
        (replace(CEILING, trusted=False), Cache.COLD, None),
        (replace(CEILING, cache_bytes=1 << 20), Cache.HOT, None),
        (replace(CEILING, cache_bytes=1 << 18), Cache.HOT, 40.0),
    ],
)
def test_there_is_a_share_only_of_a_ceiling_that_others_did_not_disturb_and_that_bounds_the_reading(
    ceiling: Ceiling, caches: Cache, share: float | None
) -> None:
    axes = Axes(("fast",), ("sum",), ("float32",), (1_000_000,), (caches,))
    at = replace(target(), ceiling=ceiling)
    (row,) = run(at, axes, Rule(), lambda dtype, n: GeneratedSource("uniform", n, 0, dtype_named(dtype)))
    record = record_of(row)
    assert record.percent_of_ceiling == (None if share is None else pytest.approx(share))
    assert (record.ceiling_gbps is None) == (share is None)
    assert ("no_ceiling" in record.flags) == (not ceiling.trusted)
