from tests.support.chart_rows import rows_of
from tests.support.measurements import POINT, replace, timed
from warpfold.app.reports.kinds.benchmark import charts


def test_each_op_dtype_and_state_of_the_caches_has_its_throughput_and_its_spread() -> None:
    points = [replace(POINT, cache=cache, n=n) for cache in ("cold", "hot") for n in (1 << 10, 1 << 20)]
    assert [chart.name for chart in charts(points)] == [
        "throughput-sum-float32-cold",
        "spread-sum-float32-cold",
        "throughput-sum-float32-hot",
        "spread-sum-float32-hot",
    ]


def test_throughput_is_bytes_over_time_under_the_ceiling() -> None:
    chart, _ = charts([replace(POINT, bytes=4_000_000_000, **timed(1.0)), replace(POINT, n=1, bytes=4, **timed(1.0))])
    assert sorted(row["y"] for row in rows_of(chart) if "y" in row) == [4e-06, 4000.0]
    assert [row["level"] for row in rows_of(chart) if "level" in row] == [4650.0, 4916.7]
    assert "highest is single_pass with 4,000 GB/s at 268,435,456 elements, 86 % of the ceiling" in chart.description


def test_the_spread_is_in_multiples_of_the_median() -> None:
    _, chart = charts([replace(POINT, kernel_ms=2.0, min_ms=1.0, low_ms=1.9, high_ms=2.1, p95_ms=3.0)])
    (row,) = rows_of(chart)
    assert (row["fastest"], row["low"], row["high"], row["p95"]) == (0.5, 0.95, 1.05, 1.5)


def test_one_size_alone_is_shown_as_bars() -> None:
    chart, _ = charts([replace(POINT, strategy=name, bytes=10**9, **timed(ms)) for name, ms in (("a", 1), ("b", 2))])
    assert [(row["name"], row["value"]) for row in rows_of(chart) if "name" in row] == [("a", 1000.0), ("b", 500.0)]
    assert chart.description == "GB/s: a 1,000, b 500."


def test_what_was_not_measured_or_cannot_be_true_is_left_out() -> None:
    skipped = replace(POINT, outcome="skipped", kernel_ms=None)
    assert charts([skipped, replace(POINT, flags=("suspect",)), replace(POINT, kind="reduce")]) == []
