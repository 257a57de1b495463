"""What many browsers poll for is read once for all of them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")

KEPT_S = 1.0
_MOST_KEPT = 256


class Recent:
    """Keeps what was read for a second, and lets those who ask meanwhile wait for the reading under way."""

    def __init__(self) -> None:
        self._readings: dict[Hashable, tuple[float, asyncio.Task[Any]]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """What `read` gave for `key` within the last second, or gives now. `key` names all that the answer depends on.

        A reading that failed is not kept.
        """
        now = time.monotonic()
        known = self._readings.get(key)
        if known is None or known[0] < now - KEPT_S:
            if len(self._readings) >= _MOST_KEPT:
                self._readings = {one: kept for one, kept in self._readings.items() if kept[0] >= now - KEPT_S}
            known = (now, asyncio.ensure_future(_awaited(read)))
            self._readings[key] = known
        try:
            # Shielded: one browser that hangs up must not take the answer away from the others.
            return cast(T, await asyncio.shield(known[1]))
        except Exception:
            if self._readings.get(key) is known:
                del self._readings[key]
            raise


async def _awaited(read: Callable[[], Awaitable[T]]) -> T:
    return await read()
