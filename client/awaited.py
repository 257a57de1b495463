"""Methods for asyncio that are those of the client that waits.

A method of `Client`, of a `LiveJob` or of a `LiveBatch` hands a conversation to its client, and returns what the client
gives. An `AsyncClient` gives a coroutine, so that the same function serves both.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

if TYPE_CHECKING:
    from warpfold.client.live_batches import AsyncLiveBatch, LiveBatch
    from warpfold.client.live_jobs import AsyncLiveJob, LiveJob

P = ParamSpec("P")
T = TypeVar("T")

# What is live asks the client that gave it.


@overload
def awaited(
    method: "Callable[Concatenate[Any, P], LiveJob]",
) -> "Callable[Concatenate[Any, P], Coroutine[Any, Any, AsyncLiveJob]]": ...


@overload
def awaited(
    method: "Callable[Concatenate[Any, P], list[LiveJob]]",
) -> "Callable[Concatenate[Any, P], Coroutine[Any, Any, list[AsyncLiveJob]]]": ...


@overload
def awaited(
    method: "Callable[Concatenate[Any, P], LiveBatch]",
) -> "Callable[Concatenate[Any, P], Coroutine[Any, Any, AsyncLiveBatch]]": ...


@overload
def awaited(
    method: "Callable[Concatenate[Any, P], list[LiveBatch]]",
) -> "Callable[Concatenate[Any, P], Coroutine[Any, Any, list[AsyncLiveBatch]]]": ...


@overload
def awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]: ...


def awaited(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method whose answer is awaited, with the same arguments and errors."""

    @wraps(method)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await method(self, *args, **kwargs)

    return call
