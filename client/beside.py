"""A request that is sent while the body of another is on its way: the job that reduces an upload while it comes."""

import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from warpfold.client.errors import WarpfoldError
from warpfold.client.exchange import Call, Content, Interrupted

_REDUCED_A_S = 2e9
"""Bytes a second that a busy service reduces, about. The job begins as long before the end of the upload as it needs at
this rate. An idle service is faster, and the slot then waits for a part of this time."""

_START_S = 0.1
_BURST = 16 << 20
"""Bytes that buffers on the way may take at once. The rate is taken from the bytes after these, once as many again have
followed."""

_LOOK_EVERY_S = 0.01


@dataclass(eq=False)
class Beside:
    """A second call, which is sent once it is due, or never. Any thread may decide that. `outcome` is the answer to the
    call; a call that failed has no outcome. `undo` makes the call that takes the outcome back where the first call is
    refused."""

    call: Call[Any]
    undo: Callable[[Any], Call[Any]] | None = None
    outcome: Any = None
    _due: threading.Event = field(default_factory=threading.Event)
    _over: bool = False

    def due(self) -> None:
        """Let the call be sent."""
        self._due.set()

    def over(self) -> None:
        """Decide that the call is not sent."""
        self._over = True
        self._due.set()

    @property
    def decided(self) -> bool:
        """Whether it is decided that the call is sent, or that it is not."""
        return self._due.is_set()

    def wait(self) -> bool:
        """Wait for the decision, and return whether the call is to be sent."""
        self._due.wait()
        return not self._over

    @property
    def wanted(self) -> bool:
        """Whether the call is to be sent."""
        return self.decided and not self._over

    def undone(self) -> Call[Any] | None:
        """The call that takes the outcome back, if there is an outcome."""
        return None if self.undo is None or self.outcome is None else self.undo(self.outcome)


@dataclass(frozen=True)
class Timed:
    """A content of which `beside` is due shortly before its end: as long before as a service needs to reduce the
    `whole` of so many bytes."""

    content: Content
    beside: Beside
    whole: int

    @property
    def length(self) -> int:
        return self.content.length

    def pieces(self, start: int = 0) -> Iterator[bytes | memoryview]:
        began, at, sent, lead_s = time.monotonic(), 0, 0, self.whole / _REDUCED_A_S + _START_S
        for piece in self.content.pieces(start):
            size = len(piece)
            yield piece
            sent += size
            if not at and sent >= _BURST:
                began, at = time.monotonic(), sent
            elif at and sent >= 2 * _BURST and not self.beside.decided:
                left_s = (self.length - start - sent) * (time.monotonic() - began) / (sent - at)
                if left_s <= lead_s:
                    self.beside.due()


def send_both(send: Callable[[Call[Any]], Any], call: Call[Any], beside: Beside) -> Any:
    """The answer to `call`. It is sent without its second call, which a thread sends. If the service refuses `call`,
    the second call is undone. A connection that breaks undoes nothing, because the conversation goes on."""

    def work() -> None:
        if beside.wait():
            with suppress(WarpfoldError):
                beside.outcome = send(beside.call)

    thread = threading.Thread(target=work, name="beside", daemon=True)
    thread.start()
    try:
        return send(replace(call, beside=None))
    except WarpfoldError as error:
        beside.over()
        thread.join()
        if not isinstance(error, Interrupted) and (undo := beside.undone()) is not None:
            with suppress(WarpfoldError):
                send(undo)
        raise
    finally:
        beside.over()
        thread.join()


async def send_both_async(send: Callable[[Call[Any]], Awaitable[Any]], call: Call[Any], beside: Beside) -> Any:
    """Do what `send_both` does, for asyncio."""
    import asyncio  # which the client that waits does not need

    async def work() -> None:
        while not beside.decided:  # noqa: ASYNC110 (another thread decides)
            await asyncio.sleep(_LOOK_EVERY_S)
        if beside.wanted:
            with suppress(WarpfoldError):
                beside.outcome = await send(beside.call)

    task = asyncio.create_task(work())
    try:
        answer = await send(replace(call, beside=None))
    except WarpfoldError as error:
        beside.over()
        await task
        if not isinstance(error, Interrupted) and (undo := beside.undone()) is not None:
            with suppress(WarpfoldError):
                await send(undo)
        raise
    except BaseException:
        task.cancel()
        raise
    finally:
        beside.over()
    await task
    return answer
