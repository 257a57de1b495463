"""A few things at a time, and users take turns: who has sent many waits behind everybody who has sent one."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """One that waits, whether it may take long, and the place that it gets."""

    is_long: bool
    place: asyncio.Future[int]


class RoundRobin:
    """A line of users, each with a line of own requests. There are a few places, of which a user has one at most.

    Requests that may take long are served at the last place alone, so that others wait neither for one user nor for any
    number of long ones. Others are served there, too, while it is free and `lent`.
    """

    def __init__(self, places: int = 1, lent: Callable[[], bool] = lambda: True) -> None:
        self._last = places - 1
        self._lent = lent
        self._served: dict[int, int] = {}
        """The users who are served, and at which place."""
        self._lines: dict[int, deque[_Request]] = {}

    @asynccontextmanager
    async def turn(self, user_id: int, *, is_long: bool = False) -> AsyncIterator[int]:
        """Wait for a turn of the user, and hold it within the block; gives the place, counted from 0."""
        place = self._free(user_id, is_long)  # where there is one, nobody waits for it
        if place is None:
            place = await self._wait(user_id, is_long)
        else:
            self._served[user_id] = place
        try:
            yield place
        finally:
            self._pass_on(user_id)

    def is_busy_with_others(self, user_id: int) -> bool:
        """Whether a user would wait because of other users."""
        return user_id not in self._served and self._free(user_id, is_long=False) is None

    def _free(self, user_id: int, is_long: bool) -> int | None:
        """The place where a request of the user can be served now."""
        if user_id in self._served:
            return None
        taken = self._served.values()
        for place in range(self._last if is_long else 0, self._last + 1):
            if place not in taken and (is_long or place < self._last or place == 0 or self._lent()):
                return place
        return None

    async def _wait(self, user_id: int, is_long: bool) -> int:
        request = _Request(is_long, asyncio.get_running_loop().create_future())
        self._lines.setdefault(user_id, deque()).append(request)
        try:
            return await request.place
        except asyncio.CancelledError:
            if request.place.done() and not request.place.cancelled():
                self._pass_on(user_id)  # its turn had come already
            else:
                self._leave(user_id, request)
            raise

    def _pass_on(self, user_id: int) -> None:
        """Give the place of a user to the user who waited longest, who then waits behind all others."""
        del self._served[user_id]
        for following in list(self._lines):
            # A long request does not hold up its user's others where the last place is taken.
            for request in list(self._lines[following]):
                place = None if request.place.done() else self._free(following, request.is_long)
                if place is not None:
                    self._served[following] = place
                    request.place.set_result(place)
                    self._leave(following, request)
                    if following in self._lines:
                        self._lines[following] = self._lines.pop(following)
                    break

    def _leave(self, user_id: int, request: _Request) -> None:
        line = self._lines[user_id]
        line.remove(request)
        if not line:
            del self._lines[user_id]
