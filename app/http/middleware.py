"""Middleware for every request: an id, HEAD and OPTIONS on every path, and headers that tell caches what to keep."""

import asyncio
import re
import time
from collections.abc import Iterable
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from warpfold.app.auth.audit import Caller, calling
from warpfold.app.http.errors import Unavailable, problem_response
from warpfold.app.http.openapi import document_of

REQUEST_ID = "X-Request-ID"
LONGEST = 64

log: FilteringBoundLogger = structlog.get_logger()

_PLAIN = re.compile(rf"[A-Za-z0-9._:-]{{1,{LONGEST}}}")
_QUIET = frozenset({"GET", "HEAD", "OPTIONS"})
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def current_request_id() -> str | None:
    """The id of the request that this task answers; None outside of a request. It goes to the job that the request
    brings, and so to every line that a worker logs about that job."""
    bound: str | None = structlog.contextvars.get_contextvars().get("request_id")
    return bound


class RequestIds:
    """ASGI middleware: takes the caller's `X-Request-ID`, or makes one, and sends it back.

    Each request is logged with one line, except those that read and succeeded: polls are many, and the metrics
    count them. An id with other than plain characters is replaced, so that a log holds no foreign text.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = sent if _PLAIN.fullmatch(sent) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        status, started, answered = 500, time.perf_counter(), False

        async def answering(message: Message) -> None:
            nonlocal status, answered
            if message["type"] == "http.response.start":
                status, answered = message["status"], True
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        caller = Caller(scope["client"][0] if scope.get("client") else "", request_id)
        with structlog.contextvars.bound_contextvars(request_id=request_id), calling(caller):
            try:
                await self._app(scope, receive, answering)
            except ClientDisconnect:
                log.info("client went away", **_log_fields(scope, started))
                return
            except asyncio.CancelledError:
                if answered:
                    raise
                # The process stops: a held request is answered so, and its client asks another process.
                stopping = problem_response(Unavailable("The service is stopping; ask again."))
                stopping.headers["Connection"] = "close"
                await stopping(scope, receive, answering)
            except Exception as error:
                log.error("request broke off", **_log_fields(scope, started), exc_info=error)
                raise
            if scope["method"] not in _QUIET or status >= 400:
                log.info("request", status=status, **_log_fields(scope, started))


def _log_fields(scope: Scope, started: float) -> dict[str, str | float]:
    # The path of an unknown route is not logged, because anybody may put anything there.
    route = getattr(scope.get("route"), "path", "none")
    return {"method": scope["method"][:16], "route": route, "ms": round((time.perf_counter() - started) * 1000, 1)}


async def allowed(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """The methods that the path of `scope` takes, for the header Allow; empty where there is no such path.

    A path that the OpenAPI document names literally (`/v1/users/me`) has the methods that stand there, not those of a
    template that fits it, too (`/v1/users/{name}`).
    """
    kept = tuple(routes)
    document = await document_of(scope["app"])
    named = document["paths"].get(scope["path"], {})
    methods = {method for method in _METHODS if method.lower() in named} or {
        method
        for method in _METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in kept)
    }
    if not methods:
        return ""
    return ", ".join(sorted(methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())))


class Methods:
    """ASGI middleware: HEAD is answered as GET is, without the body; OPTIONS with `Allow`, to everybody."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            await self._head(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "OPTIONS":
            methods = await allowed(scope["app"].routes, scope)
            if methods:
                await Response(status_code=204, headers={"Allow": methods})(scope, receive, send)
            else:
                await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _head(self, scope: Scope, receive: Receive, send: Send) -> None:
        as_get = {**scope, "method": "GET"}
        ended = False

        async def receiving() -> Message:
            return {"type": "http.disconnect"} if ended else await receive()

        async def sending(message: Message) -> None:
            nonlocal ended
            if ended:
                return  # the body, or later pieces of a stream
            scope.update({key: as_get[key] for key in ("route", "endpoint", "path_params") if key in as_get})
            await send(message)
            if message["type"] == "http.response.start":
                ended = True
                await send({"type": "http.response.body"})

        await self._app(as_get, receiving, sending)


class ResponseHeaders:
    """ASGI middleware: browsers take no answer for another type than it names, and caches neither share it nor show it
    again without asking, unless its route says otherwise."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("X-Content-Type-Options", "nosniff")
                reading = scope["method"] in ("GET", "HEAD") and message["status"] < 400
                headers.setdefault("Cache-Control", "private, no-cache" if reading else "no-store")
            await send(message)

        await self._app(scope, receive, telling if scope["type"] == "http" else send)
