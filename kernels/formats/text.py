"""Columns of CSV and TSV files, which may be compressed by gzip or zstd.

Blocks of lines are parsed apart, each by one thread, which also reads the block where the file is on this machine and
is not compressed. Blocks end where lines end, even between quotes: pyarrow cuts text in the same way unless an option
says that values hold line ends.

Text has no dtypes. The dtype of a column is inferred from its first block, or the request names it; a later value that
the dtype does not hold is an error and never changes the dtype. An integer is a number without a point and without an
exponent, and no integer is rounded: pyarrow would read one beyond int64 as the nearest float64.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import islice
from threading import local
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cores import usable_cores
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.extras import required
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.formats.row_filter import columns_of
from warpfold.kernels.formats.signature import Format
from warpfold.kernels.formats.tables import ColumnWanted, Reading, random_access
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.places.file import is_remote
from warpfold.kernels.sections import in_turn
from warpfold.kernels.sequential import Section, SequentialSource, Tally
from warpfold.kernels.source import FileBytes

NULLS = ("", "NA", "N/A", "n/a", "#N/A", "NULL", "null")
"""The texts that are read as a null. NaN is a number here."""

_FIRST_BYTES = 1 << 22
"""The block that tells the dtypes, and the longest line."""

_BLOCK_BYTES = 3 << 20
"""The most that one thread parses at a time. On 16 cores smaller blocks cost more hand-overs of the interpreter's lock,
and in larger ones, or where pyarrow's own threads share a block, threads wait for each other in the end."""

_LEAST_BLOCK_BYTES = 1 << 20
"""A short file is cut for fewer threads, because each block costs hand-overs of the lock, too."""

_HEAD_BYTES = 1 << 12
"""The beginning of a file that tells the columns' names."""

_SAMPLE_BYTES = 1 << 16
"""The beginning of a file that tells dtypes where they are floats: all threads wait for it."""

_INFERRED_BYTES = 1 << 18
"""The bytes that one thread parses at a time of the block that tells the dtypes."""

_NEAR_BYTES = 1 << 12
"""Where the end of a line is looked for at first."""

Block = Callable[[], memoryview]
"""Reads the lines of one block, which stay as they are until the same thread reads another block."""

_ROW = re.compile(r"Row #(\d+)")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_PRECISION = {"float": 24, "double": 53}


def open_text(file: BinaryIO, packed: Format | None, wanted: ColumnWanted) -> SequentialSource:
    """The elements of a column of text whose first line names the columns. Raises InvalidInput."""
    pyarrow = required("pyarrow", "tables")
    if wanted.delimiter is None:
        raise InvalidInput("is in none of the formats that can be read")
    with damaged("cannot be read as a table of text", pyarrow.ArrowException, OSError, ValueError):
        text = TextFile(file, packed, wanted.delimiter)
        name = chosen_name(wanted.column, text.names, "a column", "column")
        needed = {name} | (set() if wanted.rows is None else columns_of(wanted.rows))
        inferred = text.schema([column for column in text.names if column in needed])
        types = dict(zip(inferred.names, inferred.types, strict=True))
        types[name] = _type_of(name, types[name], wanted.dtype)
        for column, kind in types.items():
            if pyarrow.types.is_null(kind):
                types[column] = pyarrow.string()
        schema = pyarrow.schema([(column, types.get(column, pyarrow.null())) for column in text.names])
        reading = Reading.of(schema, wanted)
    hint = "" if wanted.dtype else "; the first block told the dtype, and `dtype` names another"
    return _source(text, types, hint, file.seek(0, 2) // 8, reading)


def _source(text: "TextFile", types: dict[str, Any], hint: str, likely: int, reading: Reading) -> SequentialSource:
    pyarrow, tally = required("pyarrow", "tables"), Tally()
    # A cell takes two bytes of text or more, and eight in memory.
    nbytes = max(1, 4 * text.block_bytes * len(types) // len(text.names))

    def sections() -> Iterator[Section]:
        with damaged("cannot be read as a table of text", OSError, ValueError):
            for number, block in enumerate(text.blocks()):
                yield Section(partial(read, number, block), nbytes)

    def read(number: int, block: Block) -> Iterator[NDArray[Any]]:
        return reading.elements(batches(number, block), 0, tally)

    def batches(number: int, block: Block) -> Iterator[Any]:
        try:
            yield from text.exact(number, block, types)
        except pyarrow.ArrowInvalid as error:
            why = str(error).splitlines()[0][:300]
            raise InvalidInput(f"cannot be read as a table of text: {why}{hint}") from None

    return SequentialSource(
        reading.dtype,
        lambda: in_turn(sections(), tally),
        None,
        likely,
        tally,
        sections=None if reading.nulls is NullPolicy.RAISE else sections,  # a null is refused by its index
        meaning=reading.meaning,
        nulls=reading.with_nulls(partial(_source, text, types, hint, likely)),
    )


def first_block(file: BinaryIO, packed: Format | None, delimiter: str) -> Any:
    """The columns of text as their first block tells their types: a schema of pyarrow."""
    return TextFile(file, packed, delimiter).schema()


def _type_of(name: str, inferred: Any, chosen: str | None) -> Any:
    """The type to read the column by. Raises InvalidInput naming "dtype" or "column"."""
    pyarrow = required("pyarrow", "tables")
    if chosen is not None:
        if chosen in ("float16", "bfloat16"):
            raise InvalidInput(f"is text, which is not read as {chosen}: float32 holds all values of {chosen}", "dtype")
        return pyarrow.type_for_alias(chosen)
    if pyarrow.types.is_null(inferred):
        raise InvalidInput(f"holds only nulls in the first block of column {name!r}; give its `dtype`", "dtype")
    return inferred


class TextFile:
    """A file of text, to be read from its beginning as often as needed. `names` are those of its columns.

    Opening the file raises the errors that pyarrow raises for the text, and InvalidInput where a line is too long."""

    def __init__(self, file: BinaryIO, packed: Format | None, delimiter: str) -> None:
        csv = required("pyarrow.csv", "tables")
        self._file, self._packed = file, packed
        self._bytes = None if packed is not None or is_remote(file) else FileBytes(file.fileno(), 0)
        self._size = file.seek(0, 2)
        self.block_bytes = _even_blocks(self._size, usable_cores())
        self._own = local()
        self._parsing = csv.ParseOptions(delimiter=delimiter)
        self.names: Sequence[str] = self._schema_in(self._beginning(_HEAD_BYTES), None, at_once=True).names
        # In a table of a single column an empty line is a null. In a table of several columns it is not a row.
        self._lines_are_rows = len(self.names) == 1
        self._parsing = csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=not self._lines_are_rows)

    def schema(self, columns: Sequence[str] | None = None) -> Any:
        """The schema of pyarrow that is inferred from the first block, for the named columns or for all. Raises the
        errors that pyarrow raises for the text, and InvalidInput where a line is too long."""
        pyarrow = required("pyarrow", "tables")
        if columns is not None:
            with suppress(pyarrow.ArrowInvalid):  # reading the whole block gives a better message
                schema = self._schema_in(self._beginning(min(_SAMPLE_BYTES, _FIRST_BYTES)), columns, at_once=True)
                if all(map(pyarrow.types.is_floating, schema.types)):
                    return schema  # later numbers turn no floats into another dtype
        text = self._beginning(_FIRST_BYTES, lines=2)
        try:
            return self._schema_in(text, columns, at_once=False)
        except pyarrow.ArrowInvalid:  # of a wrong line a single thread can tell the row
            return self._schema_in(text, columns, at_once=True)

    def _beginning(self, most: int, lines: int = 1) -> memoryview:
        """The first lines of the text: `most` bytes at most, or more where the first lines alone are longer."""
        for length in (most, min(max(most, _SAMPLE_BYTES), _FIRST_BYTES), _FIRST_BYTES):
            text: bytes = self._stream().read(length)
            if len(text) < length:
                return memoryview(text)
            ends = _end_of_lines(text)
            if ends if lines == 1 else _end_of_lines(text, ends - 1):
                return memoryview(text)[:ends]
        raise _line_too_long()

    def _schema_in(self, text: memoryview, columns: Sequence[str] | None, *, at_once: bool) -> Any:
        """The schema of the columns (None for all) that is inferred from `text`, which one thread or several parse."""
        pyarrow, csv = required("pyarrow", "tables"), required("pyarrow.csv", "tables")
        part = len(text) + 1 if at_once else _INFERRED_BYTES
        reading = csv.ReadOptions(use_threads=part < len(text), block_size=part)
        converting = self._converting({} if columns is None else dict.fromkeys(columns))
        return csv.read_csv(pyarrow.BufferReader(text), reading, self._parsing, converting).schema

    def _stream(self) -> Any:
        stream = random_access(self._file)
        if self._packed is None:
            return stream
        return required("pyarrow", "tables").CompressedInputStream(stream, self._packed.value)

    @staticmethod
    def _converting(types: dict[str, Any]) -> Any:
        """How the columns that `types` names are converted, or all columns if it names no column. A type of None is
        inferred."""
        return required("pyarrow.csv", "tables").ConvertOptions(
            include_columns=list(types),
            column_types={name: kind for name, kind in types.items() if kind is not None},
            null_values=list(NULLS),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    def blocks(self) -> Iterator[Block]:
        """The text in blocks of whole lines; the first begins with the names of the columns, and a block may be empty.
        A block raises InvalidInput where a line is too long."""
        if self._bytes is None:
            return self._streamed()
        return (partial(self._block, self._bytes, at) for at in range(0, self._size, self.block_bytes))

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
        start = self._line_from(file, at)
        stop = self._line_from(file, at + self.block_bytes)
        memory: bytearray | None = getattr(self._own, "memory", None)
        if memory is None or len(memory) < stop - start:  # the system clears new memory first, which takes time
            memory = self._own.memory = bytearray(max(stop - start, self.block_bytes + _NEAR_BYTES))
        lines = memoryview(memory)[: stop - start]
        file.read_into(start, np.frombuffer(lines, np.uint8))
        return lines

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

    def _parsed(self, number: int, block: memoryview, types: dict[str, Any]) -> Any:
        """The columns that `types` names in the block with this number, as a table."""
        pyarrow, csv = required("pyarrow", "tables"), required("pyarrow.csv", "tables")
        names = self.names if number else None
        reading = csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names)
        try:
            return csv.read_csv(pyarrow.BufferReader(block), reading, self._parsing, self._converting(types))
        except pyarrow.ArrowInvalid as error:
            raise pyarrow.ArrowInvalid(self._by_rows_of_the_file(str(error), number)) from None

    def batches(self, types: dict[str, Any]) -> Iterator[Any]:
        """Record batches of the columns that `types` names, of the whole file in order. Threads parse the next blocks
        meanwhile. Raises as `exact`."""
        threads = usable_cores()
        with ThreadPoolExecutor(threads, "decode") as pool:
            waiting: deque[Future[list[Any]]] = deque()
            try:
                for number, block in enumerate(self.blocks()):
                    waiting.append(pool.submit(self._listed, number, block, types))
                    if len(waiting) > threads:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for later in waiting:
                    later.cancel()

    def _listed(self, number: int, block: Block, types: dict[str, Any]) -> list[Any]:
        return list(self.exact(number, block, types))

    def exact(self, number: int, block: Block, types: dict[str, Any]) -> Iterator[Any]:
        """Record batches of the columns in the block with this number. Raises InvalidInput where a float would round an
        integer or make a number infinite, and the errors that pyarrow raises for the text. Only a float above the
        integers that its format holds exactly can be one or the other. So the text is looked at again only where a
        block has such a float."""
        lines = block()
        if not lines:
            return
        if number and not self._lines_are_rows and lines[0] in b"\r\n" and not bytes(lines).strip(b"\r\n"):
            return  # pyarrow takes a block of nothing but empty lines for an empty file
        pyarrow = required("pyarrow", "tables")
        table = self._parsed(number, lines, types)
        floats = {name: _PRECISION[str(kind)] for name, kind in types.items() if str(kind) in _PRECISION}
        suspects = {name: rows for name, bits in floats.items() if (rows := _beyond(table.column(name), bits)).size}
        if suspects:
            words = self._parsed(number, lines, {name: pyarrow.string() for name in suspects})
            for name, rows in suspects.items():
                _check(name, words.column(name), table.column(name).to_numpy(), rows)
        yield from table.to_batches()

    def _by_rows_of_the_file(self, error: str, number: int) -> str:
        """An error in the block with this number, with the row of the file in place of the row of the block."""
        before = sum(bytes(block()).count(b"\n") for block in islice(self.blocks(), number))
        return _ROW.sub(lambda match: f"Row #{int(match[1]) + before:,}", error)


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


def _beyond(column: Any, precision: int) -> NDArray[np.intp]:
    """The rows of floats, infinite ones among them, above the integers that a significand of `precision` bits holds
    exactly."""
    values, bound = column.to_numpy(), 2.0**precision
    if values.size and -bound < values.min() and values.max() < bound:  # false where the maximum is a NaN
        return np.empty(0, np.intp)
    return np.flatnonzero(np.abs(values) >= bound)


def _check(name: str, words: Any, values: NDArray[Any], rows: NDArray[np.intp]) -> None:
    """Raise InvalidInput if the text of one of `rows` is an integer that a float changed, or a number that it made
    infinite: pyarrow reads 1e400 as inf."""
    for row in rows:
        word = words[int(row)].as_py().strip()
        if np.isinf(values[row]) and any(map(str.isdigit, word)):  # the words for infinity have no digits
            raise InvalidInput(f"holds {word[:60]} in column {name!r}, which is beyond the range of {values.dtype}")
        if _INTEGER.fullmatch(word) and int(word) != int(values[row]):
            raise InvalidInput(
                f"holds {word[:60]} in column {name!r}, an integer that {values.dtype} would round; `dtype` may name "
                "int64 or uint64",
                "dtype",
            )
