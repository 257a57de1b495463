"""Large bodies are read and checked in a process apart: each takes up to a tenth of a second, in which Pydantic lets no
other thread of its process run."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from warpfold.app.fairness.turns import give_up_turn
from warpfold.app.helper_process import HelperProcess
from warpfold.app.http.errors import ApiError, FieldProblem

T = TypeVar("T")

LARGE_BYTES = 64 << 10
_OF_ONE_USER = 2
"""How many bodies of one user are in memory or in the helper at a time; the user's others wait unread."""

Reader = Callable[[bytes, int], object]
"""Reads a body as JSON, with the most elements of a `values` source; raises ApiError."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """The parameter of an endpoint that takes the body, by names: objects of this process are unknown to the helper."""

    module: str
    endpoint: str
    name: str


@dataclass(frozen=True, slots=True)
class _Refused:
    kind: type[ApiError]
    detail: str
    errors: tuple[FieldProblem, ...]


class LargeBodies:
    """Checks large bodies, a few of each user at a time."""

    def __init__(self) -> None:
        self._helper = HelperProcess()
        self._places: dict[int, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def place(self, user_id: int) -> AsyncIterator[None]:
        """Wait for the right of a user to bring one more large body, and hold it within the block."""
        give_up_turn()
        places, users = self._places.get(user_id, (asyncio.Semaphore(_OF_ONE_USER), 0))
        self._places[user_id] = (places, users + 1)
        try:
            async with places:
                yield
        finally:
            places, users = self._places.pop(user_id)
            if users > 1:
                self._places[user_id] = (places, users - 1)

    async def checked(self, parameter: Parameter, read: Reader, body: bytes, max_values: int) -> Any:
        """`body` as a value that `parameter` takes. Raises an ApiError that names the faults of `body`."""
        return await self.apart(_check, parameter, read, body, max_values)

    async def apart(self, function: Callable[..., T], *args: Any) -> T:
        """The result of `function` in the process apart. Raises the ApiError that it raises there."""
        answer = await self._helper.call(_attempt, function, args)
        if isinstance(answer, _Refused):
            raise answer.kind(answer.detail, errors=answer.errors)
        result: T = answer
        return result

    def close(self) -> None:
        """End the process."""
        self._helper.close()


def _attempt(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The result of `function`, or the ApiError that it raised in a form that can travel between processes."""
    try:
        return function(*args)
    except ApiError as error:
        return _Refused(type(error), str(error.detail), error.errors)


def _check(parameter: Parameter, read: Reader, body: bytes, max_values: int) -> Any:
    from warpfold.app.http.error_handlers import spec_problem

    try:
        return _adapter(parameter).validate_python(read(body, max_values))
    except ValidationError as error:
        raise spec_problem(error) from None


@cache
def _adapter(parameter: Parameter) -> TypeAdapter[Any]:
    endpoint = getattr(importlib.import_module(parameter.module), parameter.endpoint)
    return TypeAdapter(endpoint.__annotations__[parameter.name])
