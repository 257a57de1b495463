"""Looks up the names of receivers, so that no message waits for the name server of another user's receiver.

The system's look-up cannot be broken off: a thread that asks a silent name server is busy for half a minute, even if no
message waits for it any more. So each owner has few threads, each look-up has a deadline, and a thread counts until its
look-up returns.
"""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

Resolve = Callable[[int, str, int], Awaitable[Sequence[str]]]
"""The numeric addresses of a host and a port that a job of this owner (the id of a user) names. Raises OSError."""

_WITHIN_S = 5.0
_OF_ONE_OWNER = 2
_AT_ONCE = 64


class Lookups:
    """The threads that look up names. An object serves one event loop."""

    def __init__(self, within_s: float = _WITHIN_S) -> None:
        self._within_s = within_s
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._turns: dict[int, asyncio.Semaphore] = {}
        self._asking: Counter[int] = Counter()

    async def resolve(self, owner: int, host: str, port: int) -> Sequence[str]:
        """`Resolve`: raises OSError for a name that does not exist, or whose look-up, the wait for a thread included,
        takes too long."""
        try:
            async with asyncio.timeout(self._within_s):
                return await self._asked(owner, host, port)
        except TimeoutError:
            raise OSError(f"{host} was not looked up within {self._within_s:g} s") from None

    async def _asked(self, owner: int, host: str, port: int) -> Sequence[str]:
        turn = self._turns.setdefault(owner, asyncio.Semaphore(_OF_ONE_OWNER))
        self._asking[owner] += 1
        try:
            await turn.acquire()
            try:
                await self._free.acquire()
            except BaseException:
                turn.release()
                raise
        except BaseException:
            self._leave(owner)
            raise
        return await self._on_a_thread(owner, host, port)

    def _on_a_thread(self, owner: int, host: str, port: int) -> "asyncio.Future[Sequence[str]]":
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

        def back(addresses: Sequence[str] | OSError) -> None:
            self._turns[owner].release()
            self._free.release()
            self._leave(owner)
            if answer.done():  # the caller gave up the wait
                return
            if isinstance(addresses, OSError):
                answer.set_exception(addresses)
            else:
                answer.set_result(addresses)

        def ask() -> None:
            addresses = _looked_up(host, port)
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(back, addresses)

        try:
            # A daemon: a process that is to end does not wait for a name server.
            threading.Thread(target=ask, name="webhooks-look-up", daemon=True).start()
        except RuntimeError as error:
            back(OSError(str(error)))
        return answer

    def _leave(self, owner: int) -> None:
        self._asking[owner] -= 1
        if not self._asking[owner]:
            del self._asking[owner], self._turns[owner]


def _looked_up(host: str, port: int) -> Sequence[str] | OSError:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    except UnicodeError:
        return OSError(f"{host[:100]} is not the name of a host")
    return [str(address[0]) for *_, address in addresses]
