"""Bodies: limited in size, and JSON only."""

from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.auth.bearer import authenticate
from app.errors import BadRequest, TooLarge, UnsupportedMedia, problem_response


class BodyLimit:
    """ASGI middleware that answers 413 to a body of more than `max_bytes`, or what `others` say for a path: from its
    declared length before reading any of it, else (chunked) as soon as more has come."""

    def __init__(self, app: ASGIApp, max_bytes: int, others: Mapping[str, int] = MappingProxyType({})) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        most = self._others.get(scope["path"], self._max_bytes)
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > most:
            await problem_response(_too_large(most))(scope, receive, send)
            return
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > most:
                    raise _too_large(most)
            return message

        await self._app(scope, limited, send)


def _too_large(most: int) -> TooLarge:
    # What is still on its way is not read: the connection ends with the answer.
    return TooLarge(
        f"A body may have at most {most} bytes here; upload many values as a dataset, or generate them.",
        headers={"Connection": "close"},
    )


class JsonRequest(Request):
    """A request whose body must be JSON as RFC 8259 has it: no NaN, no Infinity."""

    async def json(self) -> Any:
        try:
            return from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            raise BadRequest(f"The body is not JSON: {error}.") from None


class JsonRoute(APIRoute):
    """A route that takes a JSON body, of authenticated users only: nothing of it is read before."""

    request_class: type[JsonRequest] = JsonRequest

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            if self.body_field is not None:
                await authenticate(request)
                media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if media_type != "application/json" and not media_type.endswith("+json"):
                    raise UnsupportedMedia(
                        f"The body must be application/json, not {media_type[:100] or 'of no declared type'}."
                    )
            return await handle(self.request_class(request.scope, request.receive))

        return strict
