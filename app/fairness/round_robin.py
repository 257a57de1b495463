"""A few things at a time, and users take turns: who has sent many waits behind everybody who has sent one."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """One that waits, and whether it may take long."""

    is_long: bool
    called: asyncio.Future[None]


class RoundRobin:
    """A line of users, each with a line of own requests.

    At most `at_once` requests are served at a time, one of each user. Where these are several, one place is kept for
    requests that do not take long: they wait neither for one user nor for any number of long ones.
    """

    def __init__(self, at_once: int = 1) -> None:
        self._at_once = at_once
        self._most_long = max(1, at_once - 1)
        self._served: dict[int, bool] = {}
        """The users who are served, and whether their requests may take long."""
        self._lines: dict[int, deque[_Request]] = {}

    @asynccontextmanager
    async def turn(self, user_id: int, *, is_long: bool = False) -> AsyncIterator[None]:
        """Wait for a turn of the user, and hold it within the block."""
        if self._may(user_id, is_long=is_long):  # nobody who waits may
            self._served[user_id] = is_long
        else:
            await self._wait(user_id, is_long)
        try:
            yield
        finally:
            self._pass_on(user_id)

    def _may(self, user_id: int, *, is_long: bool) -> bool:
        if len(self._served) >= self._at_once or user_id in self._served:
            return False
        return not is_long or sum(self._served.values()) < self._most_long

    async def _wait(self, user_id: int, is_long: bool) -> None:
        request = _Request(is_long, asyncio.get_running_loop().create_future())
        self._lines.setdefault(user_id, deque()).append(request)
        try:
            await request.called
        except asyncio.CancelledError:
            if request.called.done() and not request.called.cancelled():
                self._pass_on(user_id)  # its turn had come already
            else:
                self._leave(user_id, request)
            raise

    def _pass_on(self, user_id: int) -> None:
        """Give the turn of a user to those who waited longest, who then wait behind all others."""
        del self._served[user_id]
        for following in list(self._lines):
            # A long request does not hold up its user's others where long ones have no place.
            waiting = (each for each in self._lines[following] if not each.called.done())
            request = next((each for each in waiting if self._may(following, is_long=each.is_long)), None)
            if request is not None:
                self._leave(following, request)
                if following in self._lines:
                    self._lines[following] = self._lines.pop(following)
                self._served[following] = request.is_long
                request.called.set_result(None)

    def _leave(self, user_id: int, request: _Request) -> None:
        line = self._lines[user_id]
        line.remove(request)
        if not line:
            del self._lines[user_id]
