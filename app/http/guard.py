"""Guards all routes: a client that asks too often gets a 429, and a client with many requests at once waits for its
turn."""

import asyncio
import math

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from warpfold.app.auth.access import Access, presented
from warpfold.app.config import Settings
from warpfold.app.fairness.rates import HEALTH_PATHS, Buckets, address_of
from warpfold.app.fairness.turns import Turns, in_turn
from warpfold.app.http.errors import TooMany, problem_response

_PAUSE_S = 0.1
"""How long a 429 is held back: a client that does not wait by itself is made to, and waiting costs nothing."""

_PIECES_WITH_TURN = 4
"""After how many pieces of its body a request gives up its turn: a longer body is limited by the network."""

_HEALTH_A_SECOND = 20.0
_HEALTH = frozenset(path.decode() for path in HEALTH_PATHS)


class Guard:
    """ASGI middleware. A request counts for its user, or where it shows no token that was seen before, for its address.

    Health checks have a bucket of their own: a noisy neighbour behind the same address does not make the service look
    unhealthy.
    """

    def __init__(self, app: ASGIApp, settings: Settings, access: Access) -> None:
        self._app = app
        self._access = access
        self._users = Buckets(settings.requests_per_second_per_user, settings.request_burst_per_user)
        self._addresses = Buckets(settings.requests_per_second_per_address, settings.request_burst_per_address)
        self._health = Buckets(_HEALTH_A_SECOND, 2 * _HEALTH_A_SECOND)
        self._turns = Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = address_of(scope["client"][0]) if scope.get("client") else ""
        principal = self._access.seen(presented(HTTPConnection(scope)))
        health = scope["path"] in _HEALTH
        if health:
            key, buckets, of = f"health {host}", self._health, "health checks from this address"
        elif principal is not None:
            key, buckets, of = f"user {principal.id}", self._users, f"requests of {principal.name}"
        else:
            key, buckets, of = f"address {host}", self._addresses, "requests from this address without a valid token"
        wait_s = buckets.take(key)
        if wait_s:
            await asyncio.sleep(_PAUSE_S)
            detail = f"Too many {of}: wait {wait_s:.1f} s, and ask less often."
            await problem_response(TooMany(detail, math.ceil(wait_s)))(scope, receive, send)
            return
        async with self._turns.turn(key) as turn:
            pieces = 0

            async def receiving() -> Message:
                nonlocal pieces
                pieces += 1
                if pieces > _PIECES_WITH_TURN:
                    turn.release()
                return await receive()

            async def sending(message: Message) -> None:
                await send(message)
                if message["type"] == "http.response.start":
                    turn.release()

            with in_turn(turn):
                await self._app(scope, receiving, sending)
