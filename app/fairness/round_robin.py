"""One thing at a time, and users take turns: who has sent many waits behind everybody who has sent one."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class RoundRobin:
    """A line of users, each with a line of own requests. One request is served at a time."""

    def __init__(self) -> None:
        self._busy = False
        self._lines: dict[int, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, user_id: int) -> AsyncIterator[None]:
        """Wait for a turn of the user, and hold it within the block."""
        if self._busy:
            await self._wait(user_id)
        self._busy = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, user_id: int) -> None:
        place = asyncio.get_running_loop().create_future()
        self._lines.setdefault(user_id, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._pass_on()  # its turn had come already
            raise

    def _pass_on(self) -> None:
        """Give the turn to the user who waits first, who then waits behind all others."""
        self._busy = False
        while self._lines:
            user_id = next(iter(self._lines))
            line = self._lines.pop(user_id)
            place = line.popleft()
            if line:
                self._lines[user_id] = line
            if not place.done():
                self._busy = True
                place.set_result(None)
                return
