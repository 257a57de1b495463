"""Drawing for a server: in one warm process apart, because vl-convert keeps the interpreter's lock while it draws and
its memory afterwards."""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from warpfold.app.charts import render
from warpfold.app.charts.chart import Chart
from warpfold.app.charts.themes import Theme
from warpfold.kernels.lifeline import end_with

T = TypeVar("T")


class Press:
    """Draws charts. Its process starts with the first chart, and again should it die."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    async def svg(self, charts: Sequence[Chart], theme: Theme = Theme.LIGHT) -> list[str]:
        """Each of `charts` as an SVG element."""
        return await self._draw(render.svg, charts, theme)

    async def png(self, chart: Chart, theme: Theme = Theme.LIGHT) -> bytes:
        """`chart` as a PNG image."""
        (drawn,) = await self._draw(render.png, [chart], theme)
        return drawn

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    async def _draw(self, how: Callable[[Chart, Theme], T], charts: Sequence[Chart], theme: Theme) -> list[T]:
        try:
            return await self._attempt(how, charts, theme)
        except BrokenProcessPool:
            self.close()
            return await self._attempt(how, charts, theme)

    async def _attempt(self, how: Callable[[Chart, Theme], T], charts: Sequence[Chart], theme: Theme) -> list[T]:
        if self._pool is None:
            # A pool's process holds both ends of its own pipe: it would never see that an api was killed.
            self._pool = ProcessPoolExecutor(
                1, mp_context=get_context("spawn"), initializer=end_with, initargs=(os.getpid(),)
            )
        drawing = [asyncio.wrap_future(self._pool.submit(how, chart, theme)) for chart in charts]
        return list(await asyncio.gather(*drawing))
