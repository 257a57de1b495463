"""What many requests of one api process ask for is read once, and kept for a moment."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")

_MOST_KEPT = 256


class PollCache:
    """Reads once what many requests poll for. It keeps an answer for `kept_s` seconds, and a request that comes during
    a reading waits for that reading."""

    def __init__(self, kept_s: float) -> None:
        self._kept_s = kept_s
        self._readings: dict[Hashable, tuple[float, asyncio.Task[Any]]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """The answer of `read` for `key` that is kept or being read, or a new answer. `key` names all that the answer
        depends on. An error is not kept."""
        reading = self._readings.get(key)
        if reading is None or (reading[1].done() and reading[0] < time.monotonic() - self._kept_s):
            return await self.renewed(key, read)
        return cast(T, await self._answer(key, reading))

    async def renewed(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """A new answer of `read` for `key`, which `get` gives from now on: whoever opens a page sees what they did
        before."""
        now = time.monotonic()
        if key not in self._readings and len(self._readings) >= _MOST_KEPT:
            self._readings = {name: kept for name, kept in self._readings.items() if kept[0] >= now - self._kept_s}
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
