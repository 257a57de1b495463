"""Answers that are large, or that take long to make: a few at a time, made and sent in bounded pieces.

A user has two such answers under way, and the process eight: further ones are refused with a 429. What takes
the interpreter long is made in a process apart, whose users take turns. A piece is made when the one before has been
taken by the network, and a client that reads nothing is let go (`app.server.protocol`), which frees its place.
"""

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TypeVar

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from warpfold.app.fairness.places import NoPlace, Places
from warpfold.app.fairness.turns import give_up_turn
from warpfold.app.http.apart import Apart
from warpfold.app.http.errors import TooMany

T = TypeVar("T")

OF_ONE_USER = 2
IN_ALL = 8
_RETRY_AFTER_S = 2
_PAUSE_S = 0.2
"""How long a refusal is held back: a client that does not wait by itself is made to, and waiting costs nothing."""
_YOURS = f"You have {OF_ONE_USER} large answers under way: read these first."
_OF_ALL = f"The service has {IN_ALL} large answers under way: ask again soon."
_LARGE = 1 << 18
_PIECE = 1 << 18
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_reserved: ContextVar[ExitStack | None] = ContextVar("place", default=None)


class HeavyAnswers:
    """The answers of one api process that are under way."""

    def __init__(self) -> None:
        self._apart = Apart()
        self._places = Places(OF_ONE_USER, IN_ALL)

    async def made(self, user_id: int, function: Callable[..., T], *args: Any) -> T:
        """The result of `function` in the process apart. Raises the ApiError that it raises there."""
        return await self._apart.call(user_id, function, *args)

    @asynccontextmanager
    async def place(self, user_id: int) -> AsyncIterator[None]:
        """Keep a place for the answer that is made within the block. Raises TooMany: before anything is looked up for
        the answer, and before others that are refused so do the same."""
        with await self._taken(user_id) as place:
            token = _reserved.set(place)
            try:
                yield
            finally:
                _reserved.reset(token)

    async def answer(
        self,
        user_id: int,
        pieces: AsyncIterator[bytes],
        media_type: str,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> Response:
        """The answer that consists of `pieces`. The first is made at once, so that an error becomes a problem before
        the answer begins. Raises TooMany, and what the pieces raise."""
        give_up_turn()
        reserved = _reserved.get()
        _reserved.set(None)  # for this answer alone
        with reserved or await self._taken(user_id) as place:
            first = await anext(pieces, b"")
            return _HeavyResponse(_following(first, pieces), place.pop_all(), media_type, headers)

    async def _taken(self, user_id: int) -> ExitStack:
        """A place, to be given back. Raises TooMany."""
        place = ExitStack()
        try:
            place.enter_context(self._places.taken(user_id))
        except NoPlace as error:
            give_up_turn()
            await asyncio.sleep(_PAUSE_S)
            raise TooMany(_YOURS if error.own else _OF_ALL, _RETRY_AFTER_S) from None
        return place

    async def text(
        self, user_id: int, text: str | bytes, media_type: str, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Response:
        """The answer of a text that is at hand; it takes a place only if it is large. Raises TooMany."""
        if len(text) <= _LARGE:
            return Response(text, headers=headers, media_type=media_type)
        written = text.encode() if isinstance(text, str) else text
        return await self.answer(user_id, _cut(written), media_type, {**headers, "Content-Length": str(len(written))})

    def close(self) -> None:
        """End the process apart."""
        self._apart.close()


class _HeavyResponse(StreamingResponse):
    """Pieces that hold a place until the last is sent, or the client is gone."""

    def __init__(
        self, pieces: AsyncIterator[bytes], place: ExitStack, media_type: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(pieces, headers=headers, media_type=media_type)
        # A client may go before anything is sent: nobody calls the response then.
        self._release = weakref.finalize(self, place.close)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()


async def _following(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


async def _cut(text: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]
