"""What every answer tells browsers and caches."""

from collections.abc import Mapping
from types import MappingProxyType

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NOT_KEPT: Mapping[str, str] = MappingProxyType({"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})
"""Of problems: an error is nobody's to keep."""


class ResponseHeaders:
    """ASGI middleware: no answer is taken for another type than it says, nor kept by a cache that others share or shown
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
