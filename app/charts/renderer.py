"""Charts drawn as SVG and PNG by vl-convert, without a browser and without a network.

`svg` and `png` draw in the caller's process: a picture takes tens of milliseconds, the first half a second, and
vl-convert holds the interpreter's lock meanwhile and its memory afterwards. A server therefore draws through a
`ChartRenderer`, which has a warm process apart.
"""

import asyncio
from collections.abc import Sequence
from html import escape

from warpfold.app.charts.chart import Chart, Theme, config
from warpfold.app.helper_process import HelperProcess

_VEGA_LITE = "6.4"  # the version that Altair 6 writes


class ChartRenderer:
    """Draws charts. Its process starts with the first chart, and again should it die."""

    def __init__(self) -> None:
        self._helper = HelperProcess()

    async def svg(self, charts: Sequence[Chart], theme: Theme = Theme.LIGHT) -> list[str]:
        """Each of `charts` as an SVG element."""
        return list(await asyncio.gather(*(self._helper.call(svg, chart, theme) for chart in charts)))

    async def png(self, chart: Chart, theme: Theme = Theme.LIGHT) -> bytes:
        """`chart` as a PNG image."""
        return await self._helper.call(png, chart, theme)

    def close(self) -> None:
        """End the process."""
        self._helper.close()


def svg(chart: Chart, theme: Theme = Theme.LIGHT) -> str:
    """The chart as an SVG element, to stand in a page or a file of its own. Several may stand in one page."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(
        chart.spec, vl_version=_VEGA_LITE, config=dict(config(theme)), allowed_base_urls=[]
    )
    # vl-convert counts ids anew in each picture: those of two pictures in one page would be the same.
    drawn = drawn.replace('id="', f'id="{chart.name}-').replace("url(#", f"url(#{chart.name}-")
    spoken = escape(f"{chart.title}. {chart.description}", quote=True)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{spoken}" ', 1)


def png(chart: Chart, theme: Theme = Theme.LIGHT, scale: float = 2.0) -> bytes:
    """The chart as a PNG image of `scale` pixels a point."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(
        chart.spec, vl_version=_VEGA_LITE, scale=scale, config=dict(config(theme)), allowed_base_urls=[]
    )
    return drawn
