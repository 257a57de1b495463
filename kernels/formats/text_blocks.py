"""Files of text, which may be compressed by gzip or zstd, as lines: the beginning, and blocks of whole rows.

A row ends with a line end that is not within quotes (`text_quotes.py`). A thread that parses a block also reads it,
where the file is on this machine and is not compressed: it reads a part of the file, whose borders are line ends of any
kind, and moves a border that lies within quotes to the end of its row.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from threading import local
from typing import Any, BinaryIO

import numpy as np

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.formats.signature import Format
from warpfold.kernels.formats.tables import random_access
from warpfold.kernels.formats.text_quotes import QuotedStarts, QuotedText, ends_within
from warpfold.kernels.formats.text_recoding import LONGEST_LINE, RecodedText, line_too_long
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.machine.extras import required
from warpfold.kernels.places.file import is_remote
from warpfold.kernels.source import FileBytes

_HEAD_BYTES = 1 << 12
"""The beginning of a file that tells the columns' names."""

_SAMPLE_BYTES = 1 << 16
"""The beginning of a file that tells dtypes where they are floats: all threads wait for it."""

_FIRST_BYTES = LONGEST_LINE
"""The block that tells the dtypes."""

_BLOCK_BYTES = 3 << 20
"""The most that one thread parses at a time. On 16 cores smaller blocks cost more hand-overs of the interpreter's lock,
and in larger ones, or where pyarrow's own threads share a block, threads wait for each other in the end."""

_LEAST_BLOCK_BYTES = 1 << 20
"""A short file is cut for fewer threads, because each block costs hand-overs of the lock, too."""

_AT_ONCE_BYTES = 1 << 23
"""The longest file that waits for no compiler: pyarrow reads it in a tenth of a second."""

COMPILED = "text"
"""The mark of a machine that has compiled all functions that read text (`kernels.machine.jit`)."""

_NEAR_BYTES = 1 << 12
"""Where the end of a line is looked for at first."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What may stand before text in UTF-8, and is no part of it."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Rows of text: at most `most` rows, which have a quote of their dialect or none."""

    text: memoryview
    most: int
    quoted: bool

    @classmethod
    def of(cls, text: memoryview, dialect: Dialect, *, at_once: bool = False) -> "Lines":
        """The rows of `text`; if it is to be read `at_once`, no compiled function looks at it."""
        array = np.frombuffer(text, np.uint8)
        if at_once:
            most, quoted = int(np.count_nonzero(array == ord("\n"))), (array == dialect.quote_byte).any()
        else:
            from warpfold.kernels.formats import text_lines as compiled  # it imports Numba

            most, quoted = compiled.most_lines(array.ctypes.data if text else 0, len(text), dialect.quote_byte)
        return cls(text, most + (bool(text) and text[-1] != ord("\n")), bool(quoted))


Block = Callable[[], Lines]
"""Reads the lines of one block, which stay as they are until the same thread reads another block."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The lines that begin in a part of the file, in memory, and where in the file they begin."""

    number: int
    begin: int
    lines: Lines


class TextLines:
    """A file of text in a dialect, to be read from its beginning as often as needed, in blocks of at most
    `block_bytes`. A short file is to be read `at_once`, without compiled functions, unless some process of this machine
    has compiled them."""

    def __init__(self, file: BinaryIO, packed: Format | None, dialect: Dialect) -> None:
        self._file, self._packed, self._dialect = file, packed, dialect
        in_order = packed is not None or dialect.is_recoded or is_remote(file)
        self._bytes = None if in_order else FileBytes(file.fileno(), 0)
        self.size = file.seek(0, 2)
        self.at_once = self.size <= _AT_ONCE_BYTES and not _has_compiled()
        self.block_bytes = _even_blocks(self.size, usable_cores())
        self._own = local()
        if self._bytes is not None:
            self._starts = QuotedStarts(partial(self._look, self._bytes))

    def head(self) -> memoryview:
        """The first line, and more lines where it is short."""
        return self._beginning(_HEAD_BYTES)

    def sample(self) -> memoryview:
        """The lines that tell dtypes where they are floats."""
        return self._beginning(_SAMPLE_BYTES)

    def first_block(self, most: int | None = None) -> memoryview:
        """The lines that tell the dtypes, of `most` bytes or of 4 MiB: two at least, where there are two."""
        return self._beginning(_FIRST_BYTES if most is None else most, lines=2)

    def blocks(self) -> Iterator[Block]:
        """The text in blocks of whole rows; the first begins with the names of the columns, and a block may be empty.
        A block raises InvalidInput where a line is too long, and where the text ends within quotes."""
        if self._bytes is None:
            return self._streamed()
        return (partial(self._block, self._bytes, number) for number in range(-(-self.size // self.block_bytes)))

    def _beginning(self, most: int, lines: int = 1) -> memoryview:
        """The first lines of the text: `most` bytes at most, or more where the first lines alone are longer."""
        for length in (min(most, _FIRST_BYTES), min(max(most, _SAMPLE_BYTES), _FIRST_BYTES), _FIRST_BYTES):
            read: bytes = self._stream().read(length)
            text = read.removeprefix(_BYTE_ORDER_MARK)
            if len(read) < length:
                return memoryview(self._ended(text))
            ends = self._end_of_lines(text)
            if ends if lines == 1 else self._end_of_lines(text, ends - 1):
                return memoryview(text)[:ends]
        raise line_too_long(_FIRST_BYTES)

    def _streamed(self) -> Iterator[Block]:
        stream, rest, mark = self._stream(), b"", _BYTE_ORDER_MARK
        while read := stream.read(max(_BLOCK_BYTES, len(_BYTE_ORDER_MARK))):
            text, mark = (rest + read).removeprefix(mark), b""
            end = self._end_of_lines(text)
            if end:
                yield partial(Lines.of, memoryview(text)[:end], self._dialect, at_once=self.at_once)
            elif len(text) > _FIRST_BYTES:
                raise line_too_long(_FIRST_BYTES)
            rest = text[end:]
        if rest:
            yield partial(Lines.of, memoryview(self._ended(rest)), self._dialect, at_once=self.at_once)

    def _block(self, file: FileBytes, number: int) -> Lines:
        begins_within, ends_within = self._starts.around(number)
        part, self._own.part = self._part(file, number), None
        if not begins_within and not ends_within:
            return part.lines
        end = part.begin + len(part.lines.text)
        if ends_within and end == self.size:
            raise _no_end_of_quotes()
        start = self._line_from(file, part.begin, within=True) if begins_within else part.begin
        stop = self._line_from(file, end, within=True) if ends_within else end
        return Lines.of(memoryview(self._read(file, start, stop))[: stop - start], self._dialect, at_once=self.at_once)

    def _look(self, file: FileBytes, number: int) -> tuple[bool, bool]:
        """Whether a part of the file ends within quotes if it begins outside of them, and if it begins within."""
        lines = self._part(file, number).lines
        if not lines.quoted:
            return False, True
        if self.at_once:
            outside, inside = (ends_within(lines.text, self._dialect, within=within) for within in (False, True))
            return outside, inside
        from warpfold.kernels.formats import text_lines as compiled  # it imports Numba

        address = np.frombuffer(lines.text, np.uint8).ctypes.data
        delimiter, quote = ord(self._dialect.delimiter), self._dialect.quote_byte
        outside, inside = compiled.end_within_quotes(address, len(lines.text), delimiter, quote)
        return bool(outside), bool(inside)

    def _part(self, file: FileBytes, number: int) -> _Part:
        """The part of the file with this number, which this thread may have read just now."""
        part: _Part | None = getattr(self._own, "part", None)
        if part is None or part.number != number:
            part = self._own.part = self._part_from(file, number)
        return part

    def _part_from(self, file: FileBytes, number: int) -> _Part:
        at = number * self.block_bytes
        begin, last = max(0, at - 1), at + self.block_bytes
        stop = min(last + _NEAR_BYTES, self.size)
        # One call reads the part and what surrounds its ends: each call gives the interpreter's lock away.
        memory = self._read(file, begin, stop)  # behind these bytes there may be some of another block
        start = memory.find(b"\n", 0, min(_NEAR_BYTES, stop - begin)) + 1 if at else 0
        end = self.size - begin
        if last < self.size:
            end = memory.find(b"\n", last - 1 - begin, stop - begin) + 1
        if (at and not start) or not end:
            begin = self._line_from(file, at)
            start, end = 0, self._line_from(file, last) - begin
            memory = self._read(file, begin, begin + end)
        if not at and memory.startswith(_BYTE_ORDER_MARK):
            start = len(_BYTE_ORDER_MARK)
        return _Part(
            number, begin + start, Lines.of(memoryview(memory)[start:end], self._dialect, at_once=self.at_once)
        )

    def _read(self, file: FileBytes, start: int, stop: int) -> bytearray:
        """Memory of this thread that begins with the bytes start … stop − 1 of the file."""
        memory: bytearray | None = getattr(self._own, "memory", None)
        if memory is None or len(memory) < stop - start:  # the system clears new memory first, which takes time
            memory = self._own.memory = bytearray(max(stop - start, self.block_bytes + _NEAR_BYTES + 1))
        self._own.part = None  # it lay in this memory
        file.read_into(start, np.frombuffer(memory, np.uint8, stop - start))
        return memory

    def _line_from(self, file: FileBytes, at: int, *, within: bool = False) -> int:
        """Where the first line begins at the byte `at` or behind it; if `at` is `within` quotes, behind the row. A line
        ends with a line feed, or, if no line feed is near, with a carriage return."""
        if at == 0 or at >= self.size:
            return min(at, self.size)
        begin = at if within else at - 1
        for near in (_NEAR_BYTES, _FIRST_BYTES + 1):
            text = bytearray(min(near, self.size - begin))
            file.read_into(begin, np.frombuffer(text, np.uint8))
            find = QuotedText(text, self._dialect, within=True).first_end if within else text.find
            end = find(b"\n") + 1
            if end:
                return begin + end
            is_last = begin + len(text) == self.size
            if is_last or near > _FIRST_BYTES:
                end = find(b"\r") + 1
                if end and (end < len(text) or is_last):  # behind a last \r a \n may follow, unread
                    return begin + end
                if is_last:
                    return self.size
        raise line_too_long(_FIRST_BYTES)

    def _end_of_lines(self, text: bytes, stop: int | None = None) -> int:
        """Where the last whole row of the first `stop` bytes of `text`, or of all, ends; 0 without a whole row."""
        stop = len(text) if stop is None else stop
        if stop <= 0:
            return 0
        # Behind a last \r a \n may follow, unread.
        if not self._has_quotes(text):
            return text.rfind(b"\n", 0, stop) + 1 or text.rfind(b"\r", 0, stop - 1) + 1
        end = QuotedText(text, self._dialect, stop=stop).last_end(b"\n") + 1
        return end or QuotedText(text, self._dialect, stop=stop - 1).last_end(b"\r") + 1

    def _ended(self, text: bytes) -> bytes:
        """The last rows of the text. Raises InvalidInput where they end within quotes."""
        if self._has_quotes(text) and ends_within(memoryview(text), self._dialect, within=False):
            raise _no_end_of_quotes()
        return text

    def _has_quotes(self, text: bytes) -> bool:
        return bool(self._dialect.quote) and self._dialect.quote.encode() in text

    def _stream(self) -> Any:
        stream = stored_stream(self._file, self._packed)
        return RecodedText(stream, self._dialect) if self._dialect.is_recoded else stream


def stored_stream(file: BinaryIO, packed: Format | None) -> Any:
    """The bytes of a file from its beginning, decompressed."""
    stream = random_access(file)
    return stream if packed is None else required("pyarrow", "tables").CompressedInputStream(stream, packed.value)


def _has_compiled() -> bool:
    """Whether what reads text need only be loaded."""
    required("numba", "loops")
    from warpfold.kernels.machine.jit import is_marked  # it imports Numba

    return is_marked(COMPILED)


def _even_blocks(size: int, threads: int) -> int:
    """The bytes of a block, chosen so that all threads parse the same number of blocks. With one block more, all other
    threads would wait for it at the end."""
    rounds = max(1, -(-size // (threads * _BLOCK_BYTES)))
    return min(_BLOCK_BYTES, max(_LEAST_BLOCK_BYTES, -(-size // (threads * rounds))))


def _no_end_of_quotes() -> InvalidInput:
    return InvalidInput("cannot be read as a table of text: it ends within a cell that begins with a quote")
