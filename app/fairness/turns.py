"""Requests take turns: only a few requests of one user or address are worked on at a time."""

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ALONE = 32
_AMONG_OTHERS = 2
"""How many requests of one key are worked on at a time: the rest waits in line. A client that asks beside a flood
waits for so many of its requests, not for all that were sent."""

_OTHERS_S = 1.0


class Turn:
    """The right to be worked on, of one request."""

    def __init__(self, turns: "Turns", key: str) -> None:
        self._turns, self._key, self._held = turns, key, False

    async def __aenter__(self) -> "Turn":
        await self._turns._enter(self._key)
        self._held = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let the next request of the key begin, because this request only waits or sends from now on. A repetition
        changes nothing."""
        if self._held:
            self._held = False
            self._turns._leave(self._key)


class _Line:
    """The requests of one key: how many are worked on, and who waits."""

    def __init__(self) -> None:
        self.working = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


class Turns:
    """Lines of requests, one a key."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._latest: tuple[str, float] = ("", 0.0)
        self._others_at = -_OTHERS_S

    def turn(self, key: str) -> Turn:
        """A turn of `key`, to be waited for by `async with`."""
        return Turn(self, key)

    def waiting(self) -> int:
        """How many requests wait in line."""
        return sum(len(line.waiting) for line in self._lines.values())

    async def _enter(self, key: str) -> None:
        now = time.monotonic()
        # Others are worked on or wait, or the latest two requests came from two keys: there are others than this one.
        if len(self._lines) > (key in self._lines):
            self._others_at = now
        if self._latest[0] != key:
            if now - self._latest[1] < _OTHERS_S:
                self._others_at = now
            self._latest = (key, now)
        elif now - self._latest[1] > _OTHERS_S / 2:
            self._latest = (key, now)
        line = self._lines.setdefault(key, _Line())
        if not line.waiting and line.working < self._most(now):
            line.working += 1
            return
        place = asyncio.get_running_loop().create_future()
        line.waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave(key)  # its turn had come already
            elif place in line.waiting:  # who gave a turn up may have passed it by already
                line.waiting.remove(place)
            raise

    def _leave(self, key: str) -> None:
        line = self._lines[key]
        line.working -= 1
        most = self._most(time.monotonic())
        while line.waiting and line.working < most:
            place = line.waiting.popleft()
            if not place.done():
                line.working += 1
                place.set_result(None)
        if not line.working and not line.waiting:
            del self._lines[key]

    def _most(self, now: float) -> int:
        return _AMONG_OTHERS if now - self._others_at < _OTHERS_S else _ALONE


_current: ContextVar[Turn | None] = ContextVar("turn", default=None)


@contextmanager
def in_turn(turn: Turn) -> Iterator[None]:
    """Let what runs in the block give its turn up."""
    token = _current.set(turn)
    try:
        yield
    finally:
        _current.reset(token)


def give_up_turn() -> None:
    """Give up the turn before a long wait: the other requests of the same user need not wait as well."""
    turn = _current.get()
    if turn is not None:
        turn.release()
