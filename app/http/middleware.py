"""Every request has an id, from its answer to the last line that a worker logs about the job it brought."""

import asyncio
import re
import time
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from warpfold.app.http.errors import Unavailable, problem_response

HEADER = "X-Request-ID"
LONGEST = 64

log: FilteringBoundLogger = structlog.get_logger()

_PLAIN = re.compile(rf"[A-Za-z0-9._:-]{{1,{LONGEST}}}")
_QUIET = frozenset({"GET", "HEAD", "OPTIONS"})


def current() -> str | None:
    """The id of the request that is being answered; None outside of one."""
    bound: str | None = structlog.contextvars.get_contextvars().get("request_id")
    return bound


class RequestIds:
    """ASGI middleware: takes the caller's `X-Request-ID`, or makes one, and sends it back.

    One line is logged for each request but those that read and were answered as they should be: polls are many, and
    the metrics count them. What is not an id of plain characters is replaced, so that a log holds no foreign text.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if _PLAIN.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        status, started, answered = 500, time.perf_counter(), False

        async def answering(message: Message) -> None:
            nonlocal status, answered
            if message["type"] == "http.response.start":
                status, answered = message["status"], True
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, answering)
            except ClientDisconnect:
                log.info("client went away", **_facts(scope, started))
                return
            except asyncio.CancelledError:
                if answered:
                    raise
                # The process stops: who is held is told so, and asks another one.
                stopping = problem_response(Unavailable("The service is stopping; ask again."))
                stopping.headers["Connection"] = "close"
                await stopping(scope, receive, answering)
            except Exception as error:
                log.error("request broke off", **_facts(scope, started), exc_info=error)
                raise
            if scope["method"] not in _QUIET or status >= 400:
                log.info("request", status=status, **_facts(scope, started))


def _facts(scope: Scope, started: float) -> dict[str, str | float]:
    # The path of an unknown route is not ours to repeat.
    route = getattr(scope.get("route"), "path", "none")
    return {"method": scope["method"][:16], "route": route, "ms": round((time.perf_counter() - started) * 1000, 1)}
