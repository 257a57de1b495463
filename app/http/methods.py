"""HEAD and OPTIONS, which every path understands that understands anything."""

from collections.abc import Iterable

from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def allowed(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """The methods that the path of `scope` takes, for the header Allow; empty where there is no such path.

    A path that the OpenAPI document names literally (`/v1/users/me`) has the methods that stand there, not those of a
    template that fits it, too (`/v1/users/{name}`).
    """
    kept = tuple(routes)
    named = scope["app"].openapi()["paths"].get(scope["path"], {})
    found = {method for method in _METHODS if method.lower() in named} or {
        method
        for method in _METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in kept)
    }
    if not found:
        return ""
    return ", ".join(sorted(found | {"OPTIONS"} | ({"HEAD"} if "GET" in found else set())))


class Methods:
    """ASGI middleware: HEAD is answered as GET is, without the body; OPTIONS with `Allow`, to everybody."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            await self._head(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "OPTIONS":
            methods = allowed(scope["app"].routes, scope)
            if methods:
                await Response(status_code=204, headers={"Allow": methods})(scope, receive, send)
            else:
                await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _head(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = {**scope, "method": "GET"}
        ended = False

        async def receiving() -> Message:
            return {"type": "http.disconnect"} if ended else await receive()

        async def sending(message: Message) -> None:
            nonlocal ended
            if ended:
                return  # the body, or what a stream goes on to say
            scope.update({key: asked[key] for key in ("route", "endpoint", "path_params") if key in asked})
            await send(message)
            if message["type"] == "http.response.start":
                ended = True
                await send({"type": "http.response.body"})

        await self._app(asked, receiving, sending)
