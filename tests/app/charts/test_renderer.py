"""Charts drawn by vl-convert, in this process and in the process of a renderer."""

import asyncio
import subprocess
import sys
from xml.etree import ElementTree

import psutil
import pytest

from tests.support import processes
from warpfold.app.charts.chart import Chart, Theme
from warpfold.app.charts.renderer import ChartRenderer, png, svg
from warpfold.app.charts.vega_lite import Axis, ChartText, Level, Point, Series, line_chart

DRAWS = """
import asyncio, sys, time
from warpfold.app.charts.chart import Chart
from warpfold.app.charts.renderer import ChartRenderer

SPEC = '{"data": {"values": [{"a": 1}]}, "mark": "point", "encoding": {"x": {"field": "a", "type": "quantitative"}}}'

async def main():
    (drawn,) = await ChartRenderer().svg([Chart("one", "One", "one point", SPEC)])
    print(drawn[:4], flush=True)
    time.sleep(60)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_nothing_is_left_of_a_server_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", DRAWS], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "<svg\n"
        left = psutil.Process(server.pid).children(recursive=True)
        server.kill()
    assert left
    processes.wait_for_ends(left)


@pytest.fixture(scope="module")
def chart() -> Chart:
    lines = [
        Series("exact", [Point(1e3, 1.0), Point(1e6, 30.0, 20.0, 40.0)]),
        Series("<T4>", [Point(1e3, 0.5), Point(1e6, 5.0)], published=True),
    ]
    words = ChartText("throughput", "Throughput", "a device", 'One line is "exact", the other <T4>.')
    return line_chart(words, Axis("elements"), Axis("GB/s"), lines, [Level(50.0, "ceiling")])


def test_a_picture_is_one_element_with_a_text_for_those_who_cannot_see_it(chart: Chart) -> None:
    root = ElementTree.fromstring(svg(chart))  # noqa: S314 (our own)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert (root.get("role"), root.get("aria-label")) == ("img", f"{chart.title}. {chart.description}")
    assert "<script" not in svg(chart)


def test_ids_of_two_pictures_never_meet(chart: Chart) -> None:
    ids = {element.get("id") for element in ElementTree.fromstring(svg(chart)).iter()} - {None}  # noqa: S314
    assert all(str(name).startswith("throughput-") for name in ids)


def test_the_themes_differ_in_colour_only(chart: Chart) -> None:
    light, dark = svg(chart, Theme.LIGHT), svg(chart, Theme.DARK)
    assert "#ffffff" in light
    assert "#14181d" in dark
    assert light.count("<path") == dark.count("<path")


def test_a_png_is_one(chart: Chart) -> None:
    assert png(chart, scale=1.0).startswith(b"\x89PNG\r\n")


def test_the_renderer_draws_the_same_and_survives_the_death_of_its_process(chart: Chart) -> None:
    async def twice() -> tuple[list[str], list[str]]:
        renderer = ChartRenderer()
        try:
            first = await renderer.svg([chart, chart])
            assert renderer._helper._pool is not None
            for process in list(renderer._helper._pool._processes.values()):
                process.kill()
                process.join()
            return first, await renderer.svg([chart])
        finally:
            renderer.close()

    first, second = asyncio.run(twice())
    assert first == [svg(chart)] * 2
    assert second == [svg(chart)]
