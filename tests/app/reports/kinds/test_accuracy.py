from tests.support.chart_rows import rows_of
from tests.support.studies import accuracy_point, accuracy_result
from warpfold.app.reports.kinds.accuracy import charts as accuracy_charts
from warpfold.app.reports.kinds.accuracy import errors


def test_errors_are_drawn_by_method_and_what_has_none_is_named() -> None:
    points = [accuracy_point("sequential", n, n / 3) for n in (1000, 10000)]
    points += [accuracy_point("exact", n, 0.0) for n in (1000, 10000)]
    (chart,) = accuracy_charts(accuracy_result(points))
    assert chart.name == "error-sum-pathological-float32"
    assert [(row["series"], row["x"]) for row in rows_of(chart)] == [("sequential", 1000), ("sequential", 10000)]
    assert "without error everywhere: exact" in chart.spec


def test_published_errors_share_the_series_of_their_method() -> None:
    chart = errors("name", "Title", [accuracy_point("tree", 1000, 1.0)], {"tree": [(1000, 3.0)]})
    assert [(row["series"], row["kind"], row["y"]) for row in rows_of(chart)] == [
        ("tree", "measured", 1.0),
        ("tree", "published", 3.0),
    ]


def test_one_size_alone_makes_no_line() -> None:
    assert accuracy_charts(accuracy_result([accuracy_point("exact", 1000, 0.0)])) == []
