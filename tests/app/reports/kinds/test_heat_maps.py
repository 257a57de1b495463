import json

from tests.support.chart_rows import rows_of
from tests.support.measurements import POINT, replace, timed
from warpfold.app.charts.renderer import svg
from warpfold.app.reports.kinds.benchmark import charts, tables
from warpfold.contract.measurement import Measurement
from warpfold.kernels.studies.shapes import CaseShape


def at(shape: CaseShape, strategy: str, ms: float, **changes: object) -> Measurement:
    columns = {"n": shape.n, "bytes": 4 * shape.n, **shape.in_columns()}
    return replace(POINT, strategy=strategy, flags=(), **{**timed(ms), **columns, **changes})


GIB = 1 << 28
WIDE, NARROW = CaseShape.matrix(GIB >> 10, 1 << 10, 1), CaseShape.matrix(GIB >> 1, 2, 1)


def test_a_sweep_of_matrices_has_a_map_of_ratios_and_a_map_of_shares() -> None:
    points = [
        *(at(WIDE, name, ms) for name, ms in (("exact", 0.25), ("torch", 0.26), ("cub", 0.3))),
        *(at(NARROW, name, ms) for name, ms in (("exact", 0.4), ("torch", 2.0), ("cub", 0.2))),
    ]
    ratio, share = charts(points)
    assert (ratio.name, share.name) == ("ratio-axis1-sum-float32-cold", "share-axis1-sum-float32-cold")
    cells = {(row["x"], row["y"]): row for row in rows_of(ratio)}
    assert {place: row["shown"] for place, row in cells.items()} == {
        ("1,024", "262,144"): "1.04 ×",
        ("2", "134,217,728"): "0.500 ×",
    }
    assert "faster at 1 of 2 shapes; its lowest ratio is 0.500 × at 2 columns and 134,217,728 rows" in ratio.description
    assert [row["shown"] for row in rows_of(share)] == ["92 %", "58 %"]
    assert "best of cub, torch: axis 1, sum of float32, cold caches" in ratio.title


def test_ways_to_make_values_ops_and_caches_have_maps_of_their_own() -> None:
    shapes = [
        CaseShape.matrix(8, 4, 0), CaseShape.matrix(8, 4, 1), CaseShape.cut(32, 4),
        CaseShape.table(32, 4, "random"), CaseShape.table(32, 4, "sorted"),
    ]  # fmt: skip
    names = [chart.name for shape in shapes for chart in charts([at(shape, "exact", 1.0), at(shape, "numpy", 2.0)])]
    together = charts([at(shape, name, 1.0) for shape in shapes for name in ("exact", "numpy")])
    assert [chart.name for chart in together] == names
    assert len(set(names)) == 2 * len(shapes)
    assert [chart.name for chart in charts([at(shapes[0], "exact", 1.0, cache="hot", op="mean")])] == [
        "share-axis0-mean-float32-hot"
    ]


def test_peers_alone_have_a_map_of_shares_each_and_no_ceiling_has_none() -> None:
    assert [chart.name for chart in charts([at(WIDE, "torch", 0.3), at(WIDE, "cub", 0.3)])] == [
        "share-axis1-sum-float32-cold-torch",
        "share-axis1-sum-float32-cold-cub",
    ]
    assert charts([at(WIDE, "exact", 0.3, ceiling_gbps=None)]) == []


def test_points_by_shape_and_whole_arrays_do_not_mix() -> None:
    names = [chart.name for chart in charts([POINT, at(WIDE, "exact", 0.3)])]
    assert names == ["throughput-sum-float32-cold", "spread-sum-float32-cold", "share-axis1-sum-float32-cold"]


def test_the_table_says_the_shape() -> None:
    measured, skipped = tables([at(WIDE, "exact", 0.3), at(NARROW, "cub", 0.3, kernel_ms=None, outcome="skipped")])
    assert measured.rows[0][3] == "262,144 × 1,024, axis 1"
    assert skipped.rows[0][3] == "134,217,728 × 2, axis 1"


def test_a_map_is_drawn_with_its_figures_and_sizes_in_ascending_order() -> None:
    shapes = [CaseShape.matrix(rows, columns, 1) for rows in (9, 10, 2000) for columns in (9, 100, 20)]
    chart = charts([at(shape, "exact", 1.0 + number) for number, shape in enumerate(shapes)])[0]
    spec = json.loads(chart.spec)["layer"][0]["encoding"]
    assert spec["x"]["sort"] == ["9", "20", "100"]
    assert spec["y"]["sort"] == ["2,000", "10", "9"]
    drawn = svg(chart)
    assert drawn.count("%") >= len(shapes)
    assert "2,000" in drawn
