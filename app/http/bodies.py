"""The body of an upload, taken by threads: straight from its socket where the server offers that, else as it comes.

Through ASGI every byte is copied six times and passes the event loop in pieces of 64 KiB, which costs more than writing
it to the disk. A thread that reads the socket itself copies each byte once, while the loop serves others. Where the
system can splice, that is the copy into the file: the bytes come by a pipe and never into the memory of this process.
"""

import asyncio
import select
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Protocol, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from warpfold.app.fairness.turns import give_up_turn
from warpfold.app.http.pipes import CannotSplice, Pipe, Piped, PipeFull, opened_pipe

T = TypeVar("T")
Piece = bytes | bytearray | memoryview
Take = Callable[[Piece | Piped], None]
Wanted = Callable[[], bool]

EXTENSION = "warpfold.socket"
"""The ASGI extension: a function that hands the body over as a SocketBody, or None if it cannot."""

_PIECE = 1 << 20
_LOOK_EVERY_S = 0.1


class Body(Protocol):
    """A body that is read once. Both methods raise ClientDisconnect where the body ends early."""

    async def first(self, count: int) -> Piece:
        """The first `count` bytes, or all if there are fewer."""

    async def rest(self, take: Take, wanted: Wanted | None = None) -> None:
        """Hand all further pieces to `take`, one after the other, in a thread. What had come of a body that ends early
        is handed over first. `wanted` is asked several times a second; if it says no, the body ends here, too."""


class SocketBody:
    """The body of one request, read from its socket by one thread at a time."""

    def __init__(self, descriptor: int, early: bytes, length: int, release: "Callable[[SocketBody], None]") -> None:
        """`descriptor` is a duplicate of the socket's, which this object owns; `early` came with the head; `length` is
        that of the whole body; `release` gives the socket back to the server."""
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)
        self._early = memoryview(early)
        self._release = release
        self._stopped = False
        self._left = length
        self._length = length
        self.received = len(early)
        self.waiting = False
        """Whether the reader waits for the client."""
        self.ended = False
        """Whether the client hung up before the body's end."""

    def read(self, into: memoryview, wanted: Wanted | None) -> int:
        """Fill `into`, or as much of it as the body has; 0 after the body's end. Less comes only where the body ends
        early; then the next call raises ClientDisconnect."""
        size, count = min(len(into), self._left), 0
        if self._early:
            count = min(size, len(self._early))
            into[:count] = self._early[:count]
            self._early = self._early[count:]
            self._left -= count
        while count < size:
            came = self._receive(partial(self._socket.recv_into, into[count:size]), wanted)
            if not came and not count:
                raise ClientDisconnect
            if not came:
                break
            count += came
        return count

    def _receive(self, attempt: Callable[[], int], wanted: Wanted | None) -> int:
        """Take the next bytes by `attempt` once there are any. Returns how many; 0 if no more bytes will come."""
        while not self._stopped and not self.ended:
            try:
                count = attempt()
            except BlockingIOError:
                self.waiting = True
                ready = select.poll()
                ready.register(self._socket, select.POLLIN)
                if not ready.poll(_LOOK_EVERY_S * 1000) and wanted is not None and not wanted():
                    return 0
                self.waiting = False
            except OSError:
                self.ended = True
            else:
                self.ended = count == 0
                self.received += count
                self._left -= count
                return count
        return 0

    def _pipe(self, take: Take, wanted: Wanted | None) -> None:
        """Hand the rest of the body to `take` by a pipe. Raises CannotSplice before anything is lost."""
        with opened_pipe(_PIECE) as pipe:
            while self._left:
                count = 0
                with suppress(PipeFull):
                    while came := self._receive(partial(self._fill, pipe, _PIECE - count), wanted):
                        count += came
                if not count:
                    raise ClientDisconnect
                take(pipe.held(count))
                if wanted is not None and not wanted():
                    raise ClientDisconnect

    def _fill(self, pipe: Pipe, most: int) -> int:
        if not (size := min(most, self._left)):
            raise PipeFull
        return pipe.fill(self._socket.fileno(), size)

    @property
    def unread(self) -> int:
        """How many bytes of the body are still in the socket, or on their way."""
        return self._length - self.received

    def stop(self) -> None:
        """Let the reader find the body's end at once. Any thread may call this."""
        self._stopped = True

    def release(self) -> None:
        """Give the socket back to the server, once no thread reads any more."""
        self._socket.close()
        self._release(self)

    # What `Body` promises.

    async def first(self, count: int) -> Piece:
        buffer = bytearray(count)
        came = await self._in_thread(lambda: self.read(memoryview(buffer), None))
        return memoryview(buffer)[:came]

    async def rest(self, take: Take, wanted: Wanted | None = None) -> None:
        def work() -> None:
            by_pipe, buffer = True, memoryview(bytearray(_PIECE))
            while self._left:
                if by_pipe and not self._early:
                    try:
                        self._pipe(take, wanted)
                    except CannotSplice:
                        by_pipe = False
                else:
                    take(buffer[: self.read(buffer, wanted)])
                    if wanted is not None and not wanted():
                        raise ClientDisconnect

        await self._in_thread(work)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """The result of `work`, in a thread of its own: the pool has few, and a body may take hours."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                value = work()
            except BaseException as error:
                loop.call_soon_threadsafe(result.set_exception, error)
            else:
                loop.call_soon_threadsafe(result.set_result, value)

        threading.Thread(target=run, name="upload", daemon=True).start()
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            self.stop()
            with suppress(Exception):
                await asyncio.shield(result)
            raise


class _StreamBody:
    """The body as ASGI brings it."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream
        self._held = bytearray()
        self._ended = False

    async def first(self, count: int) -> Piece:
        while len(self._held) < count and not self._ended:
            await self._more(None)
        first, self._held = self._held[:count], self._held[count:]
        return first

    async def rest(self, take: Take, wanted: Wanted | None = None) -> None:
        cut: ClientDisconnect | None = None
        while not self._ended and cut is None:
            try:
                await self._more(wanted)
            except ClientDisconnect as error:
                cut = error
            if self._held and (len(self._held) >= _PIECE or self._ended or cut is not None):
                piece, self._held = self._held, bytearray()
                await run_in_threadpool(take, piece)
        if self._held:
            await run_in_threadpool(take, self._held)
        if cut is not None:
            raise cut

    async def _more(self, wanted: Wanted | None) -> None:
        chunk = await (anext(self._stream, None) if wanted is None else self._next_while(wanted))
        if chunk is None:
            self._ended = True
        else:
            self._held += chunk

    async def _next_while(self, wanted: Wanted) -> bytes | None:
        following = asyncio.ensure_future(anext(self._stream, None))
        try:
            while not (await asyncio.wait({following}, timeout=_LOOK_EVERY_S))[0]:
                if not wanted():
                    raise ClientDisconnect
        finally:
            if not following.done():
                following.cancel()
                with suppress(asyncio.CancelledError):
                    await following
        return following.result()


@asynccontextmanager
async def body_of(request: Request) -> AsyncIterator[Body]:
    """The body of a request, of which nothing was read yet, for the time of the block."""
    take = request.scope.get("extensions", {}).get(EXTENSION)
    body: SocketBody | None = None if take is None else take()
    if body is None:
        yield _StreamBody(request.stream())
        return
    give_up_turn()  # from here on it is the network that takes the time
    try:
        yield body
    finally:
        body.release()
