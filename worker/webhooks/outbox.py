"""The outbox of webhooks, from within an event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from warpfold.app.db import BlockingDatabase

P = ParamSpec("P")
T = TypeVar("T")


class Outbox:
    """Runs units of work on threads of its own, so that the loop never waits for Postgres."""

    def __init__(self, database: BlockingDatabase, threads: ThreadPoolExecutor) -> None:
        self._database = database
        self._threads = threads

    async def run(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`BlockingDatabase.run`"""
        return await self._on_a_thread(partial(self._database.run, work, *args, **kwargs))

    async def run_patiently(
        self, patience_s: float, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`BlockingDatabase.run_patiently`"""
        return await self._on_a_thread(partial(self._database.run_patiently, patience_s, work, *args, **kwargs))

    async def _on_a_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
