"""Files of text, which may be compressed by gzip or zstd, as lines: the beginning, and blocks of whole lines.

Blocks end where lines end, even between quotes: pyarrow cuts text in the same way unless an option says that values
hold line ends. A thread that parses a block also reads it, where the file is on this machine and is not compressed.
"""

from collections.abc import Callable, Iterator
from functools import partial
from threading import local
from typing import Any, BinaryIO

import numpy as np

from warpfold.kernels.cores import usable_cores
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.extras import required
from warpfold.kernels.formats.signature import Format
from warpfold.kernels.formats.tables import random_access
from warpfold.kernels.places.file import is_remote
from warpfold.kernels.source import FileBytes

_HEAD_BYTES = 1 << 12
"""The beginning of a file that tells the columns' names."""

_SAMPLE_BYTES = 1 << 16
"""The beginning of a file that tells dtypes where they are floats: all threads wait for it."""

_FIRST_BYTES = 1 << 22
"""The block that tells the dtypes, and the longest line."""

_BLOCK_BYTES = 3 << 20
"""The most that one thread parses at a time. On 16 cores smaller blocks cost more hand-overs of the interpreter's lock,
and in larger ones, or where pyarrow's own threads share a block, threads wait for each other in the end."""

_LEAST_BLOCK_BYTES = 1 << 20
"""A short file is cut for fewer threads, because each block costs hand-overs of the lock, too."""

_NEAR_BYTES = 1 << 12
"""Where the end of a line is looked for at first."""

Block = Callable[[], memoryview]
"""Reads the lines of one block, which stay as they are until the same thread reads another block."""


class TextLines:
    """A file of text, to be read from its beginning as often as needed, in blocks of `block_bytes` at most."""

    def __init__(self, file: BinaryIO, packed: Format | None) -> None:
        self._file, self._packed = file, packed
        self._bytes = None if packed is not None or is_remote(file) else FileBytes(file.fileno(), 0)
        self._size = file.seek(0, 2)
        self.block_bytes = _even_blocks(self._size, usable_cores())
        self._own = local()

    def head(self) -> memoryview:
        """The first line, and more lines where it is short."""
        return self._beginning(_HEAD_BYTES)

    def sample(self) -> memoryview:
        """The lines that tell dtypes where they are floats."""
        return self._beginning(_SAMPLE_BYTES)

    def first_block(self) -> memoryview:
        """The lines that tell the dtypes: two at least, where there are two."""
        return self._beginning(_FIRST_BYTES, lines=2)

    def blocks(self) -> Iterator[Block]:
        """The text in blocks of whole lines; the first begins with the names of the columns, and a block may be empty.
        A block raises InvalidInput where a line is too long."""
        if self._bytes is None:
            return self._streamed()
        return (partial(self._block, self._bytes, at) for at in range(0, self._size, self.block_bytes))

    def _beginning(self, most: int, lines: int = 1) -> memoryview:
        """The first lines of the text: `most` bytes at most, or more where the first lines alone are longer."""
        for length in (min(most, _FIRST_BYTES), min(max(most, _SAMPLE_BYTES), _FIRST_BYTES), _FIRST_BYTES):
            text: bytes = self._stream().read(length)
            if len(text) < length:
                return memoryview(text)
            ends = _end_of_lines(text)
            if ends if lines == 1 else _end_of_lines(text, ends - 1):
                return memoryview(text)[:ends]
        raise _line_too_long()

    def _streamed(self) -> Iterator[Block]:
        stream, rest = self._stream(), b""
        while read := stream.read(_BLOCK_BYTES):
            text = rest + read
            end = _end_of_lines(text)
            if end:
                yield _in_memory(text[:end])
            elif len(text) > _FIRST_BYTES:
                raise _line_too_long()
            rest = text[end:]
        if rest:
            yield _in_memory(rest)

    def _block(self, file: FileBytes, at: int) -> memoryview:
        """The lines that begin at the byte `at` or behind it, within the length of a block."""
        begin, last = max(0, at - 1), at + self.block_bytes
        stop = min(last + _NEAR_BYTES, self._size)
        # One call reads the block and what surrounds its ends: each call gives the interpreter's lock away.
        memory = self._read(file, begin, stop)  # behind these bytes there may be some of another block
        start = memory.find(b"\n", 0, min(_NEAR_BYTES, stop - begin)) + 1 if at else 0
        end = self._size - begin
        if last < self._size:
            end = memory.find(b"\n", last - 1 - begin, stop - begin) + 1
        if (at and not start) or not end:
            begin = self._line_from(file, at)
            start, end = 0, self._line_from(file, last) - begin
            memory = self._read(file, begin, begin + end)
        return memoryview(memory)[start:end]

    def _read(self, file: FileBytes, start: int, stop: int) -> bytearray:
        """Memory of this thread that begins with the bytes start … stop − 1 of the file."""
        memory: bytearray | None = getattr(self._own, "memory", None)
        if memory is None or len(memory) < stop - start:  # the system clears new memory first, which takes time
            memory = self._own.memory = bytearray(max(stop - start, self.block_bytes + _NEAR_BYTES + 1))
        file.read_into(start, np.frombuffer(memory, np.uint8, stop - start))
        return memory

    def _line_from(self, file: FileBytes, at: int) -> int:
        """Where the first line begins at the byte `at` or behind it. A line ends with a line feed, or, if no line
        feed is near, with a carriage return."""
        if at == 0 or at >= self._size:
            return min(at, self._size)
        for near in (_NEAR_BYTES, _FIRST_BYTES + 1):
            text = bytearray(min(near, self._size - at + 1))
            file.read_into(at - 1, np.frombuffer(text, np.uint8))
            end = text.find(b"\n") + 1
            if end:
                return at - 1 + end
            is_last = at - 1 + len(text) == self._size
            if is_last or near > _FIRST_BYTES:
                end = text.find(b"\r") + 1
                if end and (end < len(text) or is_last):  # behind a last \r a \n may follow, unread
                    return at - 1 + end
                if is_last:
                    return self._size
        raise _line_too_long()

    def _stream(self) -> Any:
        stream = random_access(self._file)
        if self._packed is None:
            return stream
        return required("pyarrow", "tables").CompressedInputStream(stream, self._packed.value)


def _even_blocks(size: int, threads: int) -> int:
    """The bytes of a block, chosen so that all threads parse the same number of blocks. With one block more, all other
    threads would wait for it at the end."""
    rounds = max(1, -(-size // (threads * _BLOCK_BYTES)))
    return min(_BLOCK_BYTES, max(_LEAST_BLOCK_BYTES, -(-size // (threads * rounds))))


def _in_memory(lines: bytes) -> Block:
    return lambda: memoryview(lines)


def _end_of_lines(text: bytes, stop: int | None = None) -> int:
    """Where the last whole line of the first `stop` bytes of `text`, or of all, ends; 0 without a whole line."""
    stop = len(text) if stop is None else stop
    if stop <= 0:
        return 0
    # Behind a last \r a \n may follow, unread.
    return text.rfind(b"\n", 0, stop) + 1 or text.rfind(b"\r", 0, stop - 1) + 1


def _line_too_long() -> InvalidInput:
    return InvalidInput(f"cannot be read as a table of text: a line has more than {_FIRST_BYTES:,} bytes")
