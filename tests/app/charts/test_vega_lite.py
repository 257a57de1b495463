import json
import re

import pytest

from tests.support.chart_rows import rows_of
from warpfold.app.charts.renderer import svg
from warpfold.app.charts.vega_lite import Axis, Bar, ChartText, Level, Point, Series, bar_chart, line_chart

WORDS = ChartText("name", "Title", "subtitle", "Description.")


def test_a_logarithmic_axis_leaves_out_what_it_cannot_show() -> None:
    chart = line_chart(WORDS, Axis("n"), Axis("error"), [Series("a", [Point(1, 0.0), Point(10, 1.0)])])
    assert [(row["x"], row["y"]) for row in rows_of(chart)] == [(10, 1.0)]


def test_a_linear_one_shows_zero() -> None:
    chart = line_chart(WORDS, Axis("n", log=False), Axis("error", log=False), [Series("a", [Point(0, 0.0)])])
    assert [(row["x"], row["y"]) for row in rows_of(chart)] == [(0, 0.0)]


def test_ticks_reach_up_to_the_highest_level() -> None:
    line = Series("a", [Point(1, 0.01), Point(10, 7.0)])
    chart = line_chart(WORDS, Axis("n"), Axis("GB/s"), [line], [Level(35.0, "ceiling 35 GB/s")])
    assert json.loads(chart.spec)["layer"][0]["encoding"]["y"]["axis"]["values"] == [0.01, 0.1, 1, 10]


def test_a_long_subtitle_makes_the_picture_no_wider() -> None:
    wordy = ChartText("name", "Title", "told at length " * 30, "Description.")
    pictures = [
        svg(line_chart(words, Axis("n"), Axis("error"), [Series("a", [Point(1, 1.0)])])) for words in (WORDS, wordy)
    ]
    short, long = [float(re.findall(r'width="([0-9.]+)"', picture)[0]) for picture in pictures]
    assert long <= 1.05 * short


def _written(picture: str) -> list[str]:
    return re.findall(r'<text text-anchor="middle"[^>]*>([^<]*)</text>', picture)


@pytest.mark.parametrize(
    ("values", "some", "title"),
    [
        ((1e16, 3e15), {"1e+15", "9e+15"}, "sum"),
        ((-1e16, 2e16), {"−4e+15", "0", "1.2e+16"}, "sum"),
        ((4000.0, 900.0), {"200", "1,000", "2,400"}, "sum"),
        ((0.5, 0.01), {"0.05", "0.4"}, "sum"),
        ((-1.0, 0.0), {"−0.5"}, "sum"),
        ((1e30,), {"1e+29"}, "sum"),
        ((1e-30,), {"2e-31"}, "sum"),
        ((1.7e308, -1.7e308), {"−1e+8", "0", "1e+8"}, "sum, in units of 1e+300"),
        ((5e-324,), {"1e-24"}, "sum, in units of 1e-300"),
        ((0.0,), {"0"}, "sum"),
    ],
)
def test_ticks_of_bars_are_numbers_at_any_magnitude(values: tuple[float, ...], some: set[str], title: str) -> None:
    bars = [Bar(str(index), value) for index, value in enumerate(values)]
    *labels, last = _written(svg(bar_chart(WORDS, "sum", bars)))
    assert some <= set(labels)
    assert last == title
    assert all(re.fullmatch(r"−?[0-9][0-9,.]*(e[+-][0-9]+)?", label) for label in labels), labels


def test_a_linear_axis_of_small_numbers_has_no_prefixes() -> None:
    line = Series("a", [Point(2, 0.2), Point(4, 0.4)])
    picture = svg(line_chart(WORDS, Axis("ranks", log=False, counted=True), Axis("efficiency", log=False), [line]))
    assert re.search(r">0\.[1-4]5?</text>", picture)
    assert not re.search(r">[0-9]+m</text>", picture)
