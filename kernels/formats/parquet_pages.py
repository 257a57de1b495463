"""Pages of Parquet files, as their heads describe them: how many bytes a page becomes, and so how many rows may be
decoded at a time.

A footer says how large a column is, and pages say it again, each in its head. The decoder believes the pages. A head is
a struct in Thrift's compact protocol, of which only a few fields are read.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.machine.extras import required
from warpfold.kernels.places.file import ByPosition

MOST_PAGE_BYTES = 1 << 28
"""The most bytes that a page becomes."""

_LEAST_PAGE_BYTES = 1 << 24
"""What a page may become whatever the footer says."""

_ROWS_BYTES = 1 << 26
"""About the most bytes of words that are decoded at a time."""

_TIMES = {"UNCOMPRESSED": 1, "SNAPPY": 22, "GZIP": 1040, "LZ4": 256}
"""How many bytes a codec makes of one at most; of others there is no such number."""

_HEAD_BYTES, _MOST_HEAD_BYTES = 1 << 8, 1 << 20
_NUMBER = rb"[\x80-\xff]*+[\x00-\x7f]"
_FIXED = rb"[\x18\x28\x38\x48\x58\x68](?:\x08[\x00-\xff]{8}|\x04[\x00-\xff]{4})"
_STATISTICS = rb"\x1c(?:" + _FIXED + rb"|[\x16\x26\x36\x46]" + _NUMBER + rb"|[\x11\x12\x21\x22])*+\x00"
_PLAIN_HEAD = re.compile(
    rb"\x15(N)\x15(N)\x15(N)(?:\x15N\x1c|\x2c)\x15(N)\x15(N)\x15N\x15N".replace(b"N", _NUMBER)
    + rb"(?:"
    + _STATISTICS
    + rb")?+\x00\x00"
)
"""The head of a page of numbers as most writers have it: kind, sizes, perhaps a checksum; number of values, encoding,
two more encodings, perhaps statistics. Each part begins with a byte that no other part has, so it reads as `_struct`
reads it, in a fifth of the time. Files have a page for each 100 KB or so."""
_DICTIONARY, _DELTA = 2, 7
_FEWEST_DELTA_ROWS = 1 << 8


class _Damaged(Exception):
    """Bytes that are no head of a page, or only a part of one."""


class _Page(NamedTuple):
    """A page: its kind, the bytes that it becomes and takes behind its head, the bytes of its head, how many values it
    has, and how they are encoded."""

    kind: int
    becomes: int
    takes: int
    head: int
    values: int
    encoding: int


class ColumnPages:
    """The pages of stored columns of a file."""

    def __init__(self, file: BinaryIO, metadata: Any) -> None:
        self._file = ByPosition(file)
        self._metadata = metadata

    def check(self, group: int, leaf: int) -> None:
        """Raise InvalidInput where a page of a column becomes more bytes than the footer declares for the column. The
        heads are not read where the codec cannot make so much of the bytes that are there."""
        chunk = self._metadata.row_group(group).column(leaf)
        most = _most(chunk)
        times = _TIMES.get(chunk.compression)
        if times is None or (times > 1 and int(chunk.total_compressed_size) * times > most):
            for _ in self._pages(chunk, most):
                pass

    def rows_of_words(self, group: int, leaf: int, most: int, longest: Callable[[], int]) -> int:
        """How many rows, at most `most`, of a column of words are decoded at a time; `longest` finds out how many bytes
        the longest word of its dictionary has. Raises as `check`."""
        chunk = self._metadata.row_group(group).column(leaf)
        rows = most
        for page in self._pages(chunk, _most(chunk)):
            if page.kind == _DICTIONARY:
                if page.becomes * most > _ROWS_BYTES:
                    rows = min(rows, _ROWS_BYTES // max(1, longest()))
            elif page.encoding == _DELTA:  # a word may have the beginning of the one before it
                rows = min(rows, max(_FEWEST_DELTA_ROWS, 4 * _ROWS_BYTES // max(1, page.becomes)))
            else:
                rows = min(rows, _ROWS_BYTES * max(1, page.values) // max(1, page.becomes))
        return max(1, rows)

    def _pages(self, chunk: Any, most: int) -> Iterator[_Page]:
        at = int(chunk.data_page_offset)
        if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
            at = min(at, int(chunk.dictionary_page_offset) or at)
        end = at + int(chunk.total_compressed_size)
        while at < end:
            page = self._page(at)
            if page is None:  # the decoder says what is wrong
                return
            if page.becomes > most:
                raise InvalidInput(
                    f"has a page in column {str(chunk.path_in_schema)[:200]!r} that becomes {page.becomes:,} bytes, "
                    f"and {most:,} are read at most"
                )
            yield page
            at += page.head + page.takes

    def _page(self, at: int) -> _Page | None:
        size = _HEAD_BYTES
        while size <= _MOST_HEAD_BYTES:
            data = self._read(at, size)
            try:
                return _page_of(data)
            except (IndexError, _Damaged):
                if len(data) < size:
                    return None
            size *= 16
        return None

    def _read(self, at: int, length: int) -> bytes:
        return b"" if at < 0 else self._file.read(at, length)


def _most(chunk: Any) -> int:
    return min(max(int(chunk.total_uncompressed_size), _LEAST_PAGE_BYTES), MOST_PAGE_BYTES)


def longest_word(reader: Any, group: int, name: str) -> int:
    """How many bytes the longest word has in the dictionary of a column; `reader` reads the column as one."""
    compute = required("pyarrow.compute", "tables")
    batch = next(reader.iter_batches(1, [group], [name], use_threads=False), None)
    if batch is None:
        return 0
    words = getattr(batch.column(0), "dictionary", batch.column(0))
    return int(compute.max(compute.binary_length(words)).as_py() or 0)


def _page_of(data: bytes) -> _Page:
    """The page whose head `data` begins with. Raises IndexError where a part of the head is missing, and _Damaged."""
    plain = _PLAIN_HEAD.match(data)
    if plain is not None:
        kind, becomes, takes, values, coded = (_zigzag(number, 0)[0] for number in plain.groups())
        if min(kind, becomes, takes, values, coded) < 0:
            raise _Damaged
        return _Page(kind, becomes, takes, plain.end(), values, coded)
    fields, head = _struct(data, 0, 0)
    data_head = next((fields[number] for number in (5, 7, 8) if isinstance(fields.get(number), dict)), {})
    assert isinstance(data_head, dict)
    encoding = data_head.get(4 if 8 in fields else 2, 0)
    read = (fields.get(1), fields.get(2), fields.get(3), data_head.get(1, 0), encoding)
    numbers = [number for number in read if isinstance(number, int) and number >= 0]
    if len(numbers) < len(read):
        raise _Damaged
    kind, becomes, takes, values, coded = numbers
    return _Page(kind, becomes, takes, head, values, coded)


_Fields = dict[int, "int | _Fields | None"]


def _struct(data: bytes, at: int, depth: int) -> tuple[_Fields, int]:
    """The numbers and structs in a struct by their fields, and the place behind it."""
    fields: _Fields = {}
    number = 0
    if depth > 4:
        raise _Damaged
    while (head := data[at]) != 0:
        at += 1
        kind, delta = head & 15, head >> 4
        if delta:
            number += delta
        else:
            number, at = _zigzag(data, at)
        if kind in (1, 2):
            fields[number] = int(kind == 1)
        elif kind == 3:
            at += 1
        elif kind in (4, 5, 6):
            fields[number], at = _zigzag(data, at)
        elif kind == 7:
            at += 8
        elif kind == 8:
            length, at = _varint(data, at)
            at += length
        elif kind == 12:
            fields[number], at = _struct(data, at, depth + 1)
        else:
            raise _Damaged  # heads of pages have neither lists nor maps
    return fields, at + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            return number, at
        if shift > 63:
            raise _Damaged


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return number >> 1 ^ -(number & 1), at


def leaves_of_words(schema: Any, leaf: Callable[[str], int | None], columns: Sequence[str]) -> list[tuple[str, int]]:
    """Those of the columns that are words, with the numbers of their stored columns."""
    types, made = required("pyarrow", "tables").types, []
    for name in columns:
        kind, number = schema.field(name).type, leaf(name)
        kind = kind.value_type if types.is_dictionary(kind) else kind
        words = types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind)
        if number is not None and (words or types.is_large_binary(kind)):
            made.append((name, number))
    return made
