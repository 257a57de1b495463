"""Bytes on their way from a socket into a file by a pipe, which never come into the memory of this process."""

import errno
import fcntl
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.EPERM)
"""The errors of a system, a socket or a file system that cannot splice, or of a sandbox that does not allow it."""


class CannotSplice(Exception):
    """This system cannot move bytes from a socket into a pipe."""


class PipeFull(Exception):
    """The pipe holds as much as it can."""


class Piped:
    """Bytes that wait in a pipe to be written into a file."""

    def __init__(self, pipe: int, size: int) -> None:
        self._pipe = pipe
        self._left = size

    def __len__(self) -> int:
        return self._left

    def write_to(self, file: int, position: int) -> int:
        """Write some of the bytes at `position` of a file; returns how many. Raises OSError."""
        try:
            count = os.splice(self._pipe, file, self._left, offset_dst=position)
        except OSError as error:
            if error.errno not in _UNABLE:
                raise
            count = _copy(self._pipe, file, self._left, position)
        self._left -= count
        return count


class Pipe:
    """A pipe that holds up to `size` bytes, or fewer where this user has many pipes."""

    def __init__(self, size: int) -> None:
        self._out, self._into = os.pipe()
        with suppress(OSError):
            fcntl.fcntl(self._into, fcntl.F_SETPIPE_SZ, size)

    def fill(self, socket: int, most: int) -> int:
        """Move at most `most` bytes that a socket has into the pipe; returns how many, 0 where the peer hung up. Raises
        BlockingIOError if the socket has none now, PipeFull, CannotSplice, and OSError."""
        try:
            return os.splice(socket, self._into, most, flags=os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK)
        except BlockingIOError:
            room = select.poll()
            room.register(self._into, select.POLLOUT)
            if not room.poll(0):
                raise PipeFull from None
            raise
        except OSError as error:
            if error.errno in _UNABLE:
                raise CannotSplice from None
            raise

    def held(self, size: int) -> Piped:
        """The `size` bytes that the pipe holds."""
        return Piped(self._out, size)

    def close(self) -> None:
        os.close(self._out)
        os.close(self._into)


@contextmanager
def opened_pipe(size: int) -> Iterator[Pipe]:
    """A pipe for the time of the block. Raises CannotSplice."""
    if not hasattr(os, "splice"):  # no Linux
        raise CannotSplice
    pipe = Pipe(size)
    try:
        yield pipe
    finally:
        pipe.close()


def _copy(pipe: int, file: int, size: int, position: int) -> int:
    """Do the same as `splice`, but through the memory of this process."""
    data, count = memoryview(os.read(pipe, size)), 0
    while count < len(data):
        count += os.pwrite(file, data[count:], position + count)
    return count
