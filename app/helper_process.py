"""A warm process beside a server, for work that would hold the interpreter's lock for long."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

from warpfold.kernels.machine.parent_death import end_with

P = ParamSpec("P")
T = TypeVar("T")


_NICENESS = 5
"""The server itself goes first where there are too few cores."""


def _begin(server: int) -> None:
    end_with(server)
    os.nice(_NICENESS)


class HelperProcess:
    """One process, which starts when it is first needed, and again should it die."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self.is_warm = False
        """Whether the process has made a call since it started."""

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `function` in the process. Function, arguments and result must be picklable. Calls are made in
        the order in which they came."""
        pool = self._started()
        try:
            result = await asyncio.wrap_future(pool.submit(function, *args, **kwargs))
        except BrokenProcessPool:
            if pool is self._pool:  # of several calls that met this, the first replaces it
                self.close()
            result = await asyncio.wrap_future(self._started().submit(function, *args, **kwargs))
        self.is_warm = True
        return result

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
            self.is_warm = False

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # A pool's process holds both ends of its own pipe: it would never see that its server was killed.
            self._pool = ProcessPoolExecutor(
                1, mp_context=get_context("spawn"), initializer=_begin, initargs=(os.getpid(),)
            )
        return self._pool
