"""Posts to a stranger's server: only to a public address, within a time limit, without following redirects or reading a
body."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import httpcore

from warpfold.kernels.places.addresses import is_public
from warpfold.worker.webhooks.lookups import Resolve


class AddressRefused(Exception):
    """The receiver's name has no address that may be called."""


class Unreachable(Exception):
    """The receiver gave no answer; the message says why, in words for people."""


class Guarded(httpcore.AsyncNetworkBackend):
    """Connects to the addresses that were checked, by number: a name that changes its address between the check and the
    connection (DNS rebinding) gains nothing."""

    def __init__(self, owner: int, resolve: Resolve, *, allow_private: bool) -> None:
        """A transport for messages about jobs of `owner`, the id of a user."""
        self._inner = httpcore.AnyIOBackend()
        self._allow_private = allow_private
        self._owner = owner
        self._resolve = resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the interface's)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._resolve(self._owner, host, port)
        allowed = [address for address in addresses if self._allow_private or is_public(address)]
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
    """Posts messages, several at once, within one event loop."""

    def __init__(self, resolve: Resolve, *, allow_private: bool, timeout_s: float) -> None:
        self._resolve = resolve
        self._allow_private = allow_private
        self._timeout_s = timeout_s

    async def post(self, owner: int, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """The status code of the answer. The time limit covers everything, from the look-up of the name to a slow
        answer.

        Raises AddressRefused or Unreachable.
        """
        # No connection is kept: a receiver gets a message now and then.
        backend = Guarded(owner, self._resolve, allow_private=self._allow_private)
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                httpcore.AsyncConnectionPool(network_backend=backend, max_connections=1) as pool,
                pool.stream("POST", url, headers=list(headers.items()), content=body) as response,
            ):
                return response.status
        except TimeoutError:
            raise Unreachable(f"the receiver did not answer within {self._timeout_s:g} s") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            raise Unreachable(f"the receiver cannot be reached: {str(error) or type(error).__name__}") from None
