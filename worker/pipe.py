"""The pipe between the parent of a slot and its child carries whole messages; the parent never waits for the child.

A child that is stopped reads nothing and writes nothing, or half a message. So the parent's end sends what the pipe
takes, keeps the rest, and puts together what has come: each of its calls returns at once. The child's end may wait.
"""

import pickle
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

_HEAD = struct.Struct("!Q")  # how many bytes of pickle follow
_PIECE = 1 << 18
_AHEAD_BYTES = 1 << 20
"""What the parent wants the kernel to hold for the child: requests of 32 small jobs. The kernel may allow less."""


class PipeClosed(Exception):
    """The other end is gone, and all messages that it sent were received."""


def pipe() -> "tuple[ParentEnd, socket.socket]":
    """The parent's end, and the socket of the child's end, which is passed to the child."""
    ours, theirs = socket.socketpair()
    return ParentEnd(ours), theirs


class ParentEnd:
    """Sends and receives without waiting. `wait` returns when the pipe has something to do."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _AHEAD_BYTES)
        self._end = end
        self._unsent: deque[memoryview] = deque()  # each of one message, or of what is left of it
        self._came = bytearray()

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: object) -> None:
        """Send as much of `message` as the pipe takes; `flush` sends the rest. Raises OSError when the child is
        gone."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._unsent.append(memoryview(_HEAD.pack(len(data)) + data))
        self.flush()

    def flush(self) -> None:
        """Send as much of the rest as the pipe takes. Raises OSError when the child is gone."""
        while self._unsent:
            try:
                sent = self._end.send(self._unsent[0][:_PIECE])
            except BlockingIOError:
                return
            if sent < len(self._unsent[0]):
                self._unsent[0] = self._unsent[0][sent:]
            else:
                self._unsent.popleft()

    def receive(self) -> Any | None:
        """The next message, or None if it has not arrived whole. Raises PipeClosed."""
        if (message := self._whole()) is not None:
            return message
        try:
            piece = self._end.recv(_PIECE)
        except BlockingIOError:
            return None
        except OSError:
            piece = b""
        if not piece:
            raise PipeClosed
        self._came += piece
        return self._whole()

    def wait(self, seconds: float, *others: int) -> Sequence[int]:
        """Sleep until the child has sent something or takes more of an unsent message, until one of `others` (file
        numbers) can be read, or until the time is over. Returns the file numbers that can be read, the pipe's among
        them."""
        if len(self._came) >= _HEAD.size and self._is_whole():
            return (self.fileno(),)
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN | (select.POLLOUT if self._unsent else 0))
        for other in others:
            poll.register(other, select.POLLIN)
        ready = poll.poll(max(0.0, seconds) * 1000)
        return [number for number, what in ready if what & ~select.POLLOUT]

    def close(self) -> None:
        self._end.close()

    def _is_whole(self) -> bool:
        (length,) = _HEAD.unpack_from(self._came)
        return bool(len(self._came) >= _HEAD.size + length)

    def _whole(self) -> Any | None:
        if len(self._came) < _HEAD.size or not self._is_whole():
            return None
        (length,) = _HEAD.unpack_from(self._came)
        end = _HEAD.size + length
        message = pickle.loads(memoryview(self._came)[_HEAD.size : end].tobytes())  # noqa: S301 (our own child)
        del self._came[:end]
        return message


class ChildEnd:
    """Waits for the parent, and may be used by several threads to send."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._sending = threading.Lock()

    def send(self, message: object) -> None:
        """Send all of `message`. Raises OSError when the parent is gone."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with self._sending:
            self._end.sendall(_HEAD.pack(len(data)) + data)  # in one piece, or the parent wakes up for each

    def receive(self) -> Any:
        """The next message. Raises PipeClosed when the parent is gone."""
        (length,) = _HEAD.unpack(self._exactly(_HEAD.size))
        return pickle.loads(self._exactly(length))  # noqa: S301 (our own parent)

    def _exactly(self, count: int) -> bytes:
        came = bytearray()
        while len(came) < count:
            try:
                piece = self._end.recv(min(count - len(came), _PIECE))
            except ConnectionError:
                piece = b""
            if not piece:
                raise PipeClosed
            came += piece
        return bytes(came)
