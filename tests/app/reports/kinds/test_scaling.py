import json

from tests.support.chart_rows import rows_of
from tests.support.studies import message_point, scaling_point, scaling_result
from warpfold.app.reports.kinds.scaling import charts as scaling_charts


def test_speedup_begins_at_one_rank_and_stands_beside_the_ideal() -> None:
    points = [scaling_point(1, 10**6, 4.0, 4.0), scaling_point(2, 10**6, 2.5, 4.0)]
    speedup, efficiency = scaling_charts(scaling_result(points))
    series = "1,000,000, float, process per rank, auto"
    assert [(r["x"], r["y"]) for r in rows_of(speedup) if r["series"] == series] == [(1, 1.0), (2, 1.6)]
    assert [(r["x"], r["y"]) for r in rows_of(speedup) if r["series"] == "ideal"] == [(1, 1), (2, 2)]
    assert [(r["x"], r["y"]) for r in rows_of(efficiency)] == [(1, 1.0), (2, 0.8)]


def test_ranks_are_counted_and_the_best_speedup_is_that_of_several() -> None:
    points = [scaling_point(count, 10**6, total, 4.0) for count, total in ((1, 4.0), (2, 5.0), (4, 8.0))]
    speedup, _ = scaling_charts(scaling_result(points))
    assert "The highest is 0.800 on 2 ranks" in speedup.description
    encoding = json.loads(speedup.spec)["layer"][0]["encoding"]
    assert encoding["x"]["axis"]["values"] == [1, 2, 4]


def test_what_is_suspect_is_in_no_picture() -> None:
    points = [scaling_point(1, 10**6, 4.0, 4.0), scaling_point(2, 10**6, 0.1, 4.0, suspect="40× on 2")]
    assert scaling_charts(scaling_result(points)) == []


def test_bus_bandwidth_has_a_line_a_way() -> None:
    messages = [message_point(size, 10.0, algorithm) for algorithm in ("ring", "tree") for size in (8, 8192)]
    (chart,) = scaling_charts(scaling_result(messages=messages))
    assert {row["series"] for row in rows_of(chart)} == {
        "2 ranks, ring, process per rank",
        "2 ranks, tree, process per rank",
    }
