"""Limits of a request: a body of limited size, as JSON, and only parameters that the route knows."""

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.http.bearer import MaybeWorker, User, authenticate
from warpfold.app.http.context import context_of
from warpfold.app.http.errors import BadRequest, FieldProblem, Invalid, TooLarge, UnsupportedMedia, problem_response
from warpfold.app.http.large_bodies import LARGE_BYTES, Parameter
from warpfold.contract.json_text import read_json
from warpfold.kernels.errors import InvalidInput

_JSON = re.compile(r"application/([!-.0-~]+\+)?json")
_MOST_TOLD = 20
MOST_FIELDS = 20_000
"""How many fields a body may have in all objects together, counted by their colons. Each unknown field becomes an
error of its own before anybody looks at the first: a million of them would hold up the api for half a minute."""


class BodyLimit:
    """ASGI middleware that answers 413 to a body of more than `max_bytes`, or what `others` say for a path and those
    below it: from its declared length before reading any of it, else (chunked) as soon as more has come."""

    def __init__(self, app: ASGIApp, max_bytes: int, others: Mapping[str, int] = MappingProxyType({})) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        other = next((most for prefix, most in self._others.items() if f"{path}/".startswith(f"{prefix}/")), None)
        most = self._max_bytes if other is None else other
        detail = f"A body may have at most {most} bytes here"
        detail += "." if other is not None else "; upload many values as a dataset, or generate them."
        # The rest of the body is not read: the connection ends with the answer.
        too_large = TooLarge(detail, headers={"Connection": "close"})
        if (declared_bytes(Headers(scope=scope)) or 0) > most:
            await problem_response(too_large)(scope, receive, send)
            return
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > most:
                    raise too_large
            return message

        await self._app(scope, limited, send)


def declared_bytes(headers: Headers) -> int | None:
    """The declared length of a body; None without one. Only the first digits of a long number are read:
    enough to see that the body is too large."""
    declared = headers.get("content-length", "")
    return int(declared.lstrip("0")[:20] or "0") if declared.isdecimal() else None


async def known_parameters(user: User, request: Request) -> None:
    """Dependency that refuses parameters which the route does not have: a misspelt filter would list everything. It
    also holds users to what they and their keys may do, on every route that it guards."""
    _refuse_unknown(request)


async def known_parameters_for_workers(user: MaybeWorker, request: Request) -> None:
    """Check what `known_parameters` checks, for routes that are open to the workers of the service, too."""
    _refuse_unknown(request)


def _refuse_unknown(request: Request) -> None:
    if not request.query_params:
        return
    known = [
        name
        for field in request.scope["route"].dependant.query_params
        for name in _names(field.alias, field.field_info.annotation)
    ]
    detail = f"is no parameter of this path; known: {', '.join(known) or 'none'}"
    unknown = [FieldProblem(field=name[:64], message=detail) for name in request.query_params if name not in known]
    if unknown:
        raise Invalid.at(unknown[:_MOST_TOLD])


def _names(alias: str, annotation: object) -> Sequence[str]:
    """The query parameters that a parameter of the endpoint stands for: a model stands for all of its fields."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return list(annotation.model_fields)
    return [alias]


class JsonRequest(Request):
    """A request whose body must be JSON as RFC 8259 has it: no NaN, no Infinity. No object may have two members of one
    name, although the RFC leaves that open."""

    checked: Any = None
    """The value of a large body that was checked already."""

    @staticmethod
    def read(body: bytes, max_values: int) -> Any:
        """`body` as JSON. Raises BadRequest, Invalid or TooLarge."""
        if body.count(b":") > MOST_FIELDS:
            raise TooLarge(f"A body may have at most {MOST_FIELDS} fields.")
        try:
            return read_json(body)
        except InvalidInput as error:
            raise Invalid.of(error.field or "", str(error)) from None
        except ValueError as error:
            raise BadRequest(f"The body is not JSON: {error}.") from None

    async def json(self) -> Any:
        if self.checked is not None:
            return self.checked
        return self.read(await self.body(), (await context_of(self)).settings.max_values)


class JsonRoute(APIRoute):
    """A route that takes a JSON body, of authenticated users only: nothing of it is read before. A body of more than
    `most_bytes_here` is checked in a process apart."""

    request_class: type[JsonRequest] = JsonRequest
    most_bytes_here = LARGE_BYTES

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            checked = self.request_class(request.scope, request.receive)
            if self.body_field is not None:
                principal = await authenticate(request)
                media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if not _JSON.fullmatch(media_type):
                    raise UnsupportedMedia(
                        f"The body must be application/json, not {media_type[:100] or 'of no declared type'}."
                    )
                declared = declared_bytes(request.headers)
                if declared is None or declared > self.most_bytes_here:
                    await self.check_apart(checked, principal)
                answer = await self.at_once(checked, principal)
                if answer is not None:
                    return answer
            return await handle(checked)

        return strict

    async def at_once(self, request: JsonRequest, principal: Principal) -> Response | None:
        """The answer to a plain request, for a route that has a short way for it; None sends the request the whole way,
        which also words every refusal. Raises ApiError."""
        return None

    async def check_apart(self, request: JsonRequest, principal: Principal) -> None:
        """Give `request` its checked value, if its body turns out to be a large one. Raises ApiError."""
        context = await context_of(request)
        assert self.body_field is not None
        takes = Parameter(self.endpoint.__module__, self.endpoint.__qualname__, self.body_field.name)
        async with context.large_bodies.place(principal.id):
            body = await request.body()
            if len(body) > LARGE_BYTES:
                request.checked = await context.large_bodies.checked(
                    principal.id, takes, request.read, body, context.settings.max_values
                )
