"""The dashboard's routes in one api process share the poll cache and the bundle of Vega."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Request

from warpfold.app.dashboard.assets import VegaBundle

T = TypeVar("T")

KEPT_S = 1.0
_MOST_KEPT = 256


class PollCache:
    """Reads once what many browsers poll for. It keeps an answer for a second, and a request that comes during a
    reading waits for that reading."""

    def __init__(self) -> None:
        self._readings: dict[Hashable, tuple[float, asyncio.Task[Any]]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """The answer of `read` for `key` from within the last second, or a new answer. `key` names all that the answer
        depends on. An error is not kept."""
        reading = self._readings.get(key)
        if reading is None or reading[0] < time.monotonic() - KEPT_S:
            return await self.renewed(key, read)
        return cast(T, await self._answer(key, reading))

    async def renewed(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """A new answer of `read` for `key`, which `get` gives from now on: whoever opens a page sees what they did
        before."""
        now = time.monotonic()
        if key not in self._readings and len(self._readings) >= _MOST_KEPT:
            self._readings = {name: kept for name, kept in self._readings.items() if kept[0] >= now - KEPT_S}
        reading = self._readings[key] = (now, asyncio.ensure_future(_awaited(read)))
        return cast(T, await self._answer(key, reading))

    async def _answer(self, key: Hashable, reading: tuple[float, asyncio.Task[Any]]) -> Any:
        try:
            # Shielded: one browser that hangs up must not take the answer away from the others.
            return await asyncio.shield(reading[1])
        except Exception:
            if self._readings.get(key) is reading:
                del self._readings[key]
            raise


async def _awaited(read: Callable[[], Awaitable[T]]) -> T:
    return await read()


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared parts, which `app.dashboard.install` makes once."""

    polls: PollCache
    vega: VegaBundle


async def shared_of(request: Request) -> Shared:
    """The shared parts of the app that serves `request`."""
    shared: Shared = request.app.state.dashboard
    return shared


Sharing = Annotated[Shared, Depends(shared_of)]
