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


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([4e16, 1e16], ["0", "1e+16", "4e+16"]),
        ([-3e18, 3e18], ["−2e+18", "0", "2e+18"]),
        ([4e-9, 0.0], ["0", "1e-9", "4e-9"]),
        ([4e6, 1e6], ["0", "1M", "4M"]),
        ([0.4, 0.1], ["0", "100m", "400m"]),
        ([0.0, 0.0], ["0"]),
    ],
)
def test_lengths_of_bars_are_written_for_any_magnitude(values: list[float], labels: list[str]) -> None:
    bars = [Bar(name, value) for name, value in zip(("first", "second"), values, strict=True)]
    shown = re.findall(r">([^<>]+)</text>", svg(bar_chart(WORDS, "sum", bars)))
    assert set(labels) <= set(shown)
    assert len(shown) == len(set(shown)), "no two ticks have one label"
