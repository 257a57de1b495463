"""One POST to a stranger: to a public address only, within a time limit, following and reading nothing more."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpcore

from warpfold.app.webhooks.addresses import is_public

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class AddressRefused(Exception):
    """The receiver's name leads to no address that may be called."""


class Unreachable(Exception):
    """The receiver gave no answer; the message says why, in words for people."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The numeric addresses of a host. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Guarded(httpcore.AsyncNetworkBackend):
    """Connects to addresses that were looked at, by number: a name that changes its mind between look-up and
    connection (DNS rebinding) gains nothing."""

    def __init__(self, *, allow_private: bool, resolve: Resolve = resolve) -> None:
        self._inner = httpcore.AnyIOBackend()
        self._allow_private = allow_private
        self._resolve = resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the interface's)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        found = await self._resolve(host, port)
        allowed = [address for address in found if self._allow_private or is_public(address)]
        if not allowed:
            raise AddressRefused(f"{host} leads to a private address, which this server does not call")
        error: Exception = httpcore.ConnectError("no address")
        for address in allowed:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failure:
                error = failure
        raise error

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class Transport:
    """Posts messages; several at once. To be used as a context, within one event loop."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend, *, timeout_s: float, at_once: int) -> None:
        # No connection is kept: a receiver gets a message now and then.
        self._pool = httpcore.AsyncConnectionPool(
            network_backend=backend, max_connections=at_once, max_keepalive_connections=0
        )
        self._timeout_s = timeout_s

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """The status code of the answer. The time limit is for all of it, name look-up and a dripping answer included.

        Raises AddressRefused or Unreachable.
        """
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._pool.stream("POST", url, headers=list(headers.items()), content=body) as response,
            ):
                return response.status
        except TimeoutError:
            raise Unreachable(f"the receiver did not answer within {self._timeout_s:g} s") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            raise Unreachable(f"the receiver cannot be reached: {str(error) or type(error).__name__}") from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._pool.aclose()
