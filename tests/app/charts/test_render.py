import asyncio
from xml.etree import ElementTree

import pytest

from warpfold.app.charts.chart import Chart
from warpfold.app.charts.render import png, svg
from warpfold.app.charts.renderer import Press
from warpfold.app.charts.themes import Theme
from warpfold.app.charts.vega_lite import Axis, Level, Line, Point, Words, line_chart


@pytest.fixture(scope="module")
def chart() -> Chart:
    lines = [
        Line("exact", [Point(1e3, 1.0), Point(1e6, 30.0, 20.0, 40.0)]),
        Line("<T4>", [Point(1e3, 0.5), Point(1e6, 5.0)], published=True),
    ]
    words = Words("throughput", "Throughput", "a device", 'One line is "exact", the other <T4>.')
    return line_chart(words, Axis("elements"), Axis("GB/s"), lines, [Level(50.0, "ceiling")])


def test_a_picture_is_one_element_with_a_text_for_those_who_cannot_see_it(chart: Chart) -> None:
    root = ElementTree.fromstring(svg(chart))  # noqa: S314 (our own)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert (root.get("role"), root.get("aria-label")) == ("img", f"{chart.title}. {chart.description}")
    assert "<script" not in svg(chart)


def test_ids_of_two_pictures_never_meet(chart: Chart) -> None:
    ids = {element.get("id") for element in ElementTree.fromstring(svg(chart)).iter()} - {None}  # noqa: S314
    assert all(str(one).startswith("throughput-") for one in ids)


def test_the_themes_differ_in_colour_only(chart: Chart) -> None:
    light, dark = svg(chart, Theme.LIGHT), svg(chart, Theme.DARK)
    assert "#ffffff" in light
    assert "#14181d" in dark
    assert light.count("<path") == dark.count("<path")


def test_a_png_is_one(chart: Chart) -> None:
    assert png(chart, scale=1.0).startswith(b"\x89PNG\r\n")


def test_the_press_draws_the_same_and_survives_the_death_of_its_process(chart: Chart) -> None:
    async def twice() -> tuple[list[str], list[str]]:
        press = Press()
        try:
            first = await press.svg([chart, chart])
            assert press._helper._pool is not None
            for process in list(press._helper._pool._processes.values()):
                process.kill()
                process.join()
            return first, await press.svg([chart])
        finally:
            press.close()

    first, second = asyncio.run(twice())
    assert first == [svg(chart)] * 2
    assert second == [svg(chart)]
