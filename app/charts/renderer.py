"""Drawing for a server: in a warm process apart, because vl-convert keeps the interpreter's lock while it draws and
its memory afterwards."""

import asyncio
from collections.abc import Sequence

from warpfold.app.charts import render
from warpfold.app.charts.chart import Chart
from warpfold.app.charts.themes import Theme
from warpfold.app.helper_process import Helper


class Press:
    """Draws charts. Its process starts with the first chart, and again should it die."""

    def __init__(self) -> None:
        self._helper = Helper()

    async def svg(self, charts: Sequence[Chart], theme: Theme = Theme.LIGHT) -> list[str]:
        """Each of `charts` as an SVG element."""
        return list(await asyncio.gather(*(self._helper.call(render.svg, chart, theme) for chart in charts)))

    async def png(self, chart: Chart, theme: Theme = Theme.LIGHT) -> bytes:
        """`chart` as a PNG image."""
        return await self._helper.call(render.png, chart, theme)

    def close(self) -> None:
        """End the process."""
        self._helper.close()
