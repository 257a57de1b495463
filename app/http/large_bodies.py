"""Large bodies are read and checked in processes apart: each takes up to seconds, in which Pydantic lets no other
thread of its process run.

The bodies of users take turns at two processes, of which a user has one at most. Bodies of more than half a megabyte
have the second one alone: none of up to that size waits for one of sixteen, which may have millions of numbers.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from warpfold.app.fairness.turns import give_up_turn
from warpfold.app.http.apart import Apart

T = TypeVar("T")

LARGE_BYTES = 64 << 10
_LONG_BYTES = 512 << 10
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


class LargeBodies:
    """Checks large bodies, a few of each user at a time."""

    def __init__(self) -> None:
        self._apart = Apart(processes=2)
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

    async def checked(self, user_id: int, parameter: Parameter, read: Reader, body: bytes, max_values: int) -> Any:
        """`body` as a value that `parameter` takes. Raises an ApiError that names the faults of `body`."""
        return await self.apart(user_id, len(body), _check, parameter, read, body, max_values)

    async def apart(self, user_id: int, nbytes: int, function: Callable[..., T], *args: Any) -> T:
        """The result of `function`, which works on a body of so many bytes, in a process apart. Raises the ApiError
        that it raises there."""
        return await self._apart.call(user_id, function, *args, is_long=nbytes > _LONG_BYTES)

    def close(self) -> None:
        """End the processes."""
        self._apart.close()


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
