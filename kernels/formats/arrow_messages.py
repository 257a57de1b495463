"""Messages of Arrow files and streams: what they say of the record batches and dictionaries that follow them.

pyarrow decodes a batch as a whole, and to whatever its buffers claim to be. So what a batch becomes is looked at before
pyarrow gets to it. Messages are flatbuffers, of which only these few fields are read.
"""

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.machine.extras import required
from warpfold.kernels.places.file import ByPosition

MOST_BATCH_BYTES = 1 << 28
"""The most bytes that the columns of a compressed record batch that are read become."""

_MOST_METADATA_BYTES = 1 << 26
_MAGIC = b"ARROW1"
_LONG_HEAD = 0xFFFFFFFF
_DICTIONARY, _BATCH = 2, 3


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a flatbuffer, which begins at `at`. Raises struct.error where it leads out of its bytes."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> Self:
        return cls(data, struct.unpack_from("<I", data)[0])

    def _place(self, field: int) -> int | None:
        table = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        if table < 0 or 4 + 2 * field >= struct.unpack_from("<H", self.data, table)[0]:
            return None
        offset = int(struct.unpack_from("<H", self.data, table + 4 + 2 * field)[0])
        return self.at + offset if offset else None

    def number(self, field: int, form: str = "<q") -> int:
        place = self._place(field)
        return 0 if place is None else int(struct.unpack_from(form, self.data, place)[0])

    def table(self, field: int) -> "_Table | None":
        place = self._place(field)
        return None if place is None else _Table(self.data, place + self._offset(place))

    def structs(self, field: int, form: str) -> list[tuple[int, ...]]:
        """The items of a list of structs."""
        place = self._place(field)
        if place is None:
            return []
        begin = place + self._offset(place)
        count, size = self._offset(begin), struct.calcsize(form)
        return list(struct.iter_unpack(form, self.data[begin + 4 : begin + 4 + size * count]))

    def _offset(self, place: int) -> int:
        return int(struct.unpack_from("<I", self.data, place)[0])


class Messages:
    """The messages of an Arrow file or stream, which is read beside pyarrow."""

    def __init__(self, file: BinaryIO, schema: Any, columns: Collection[str]) -> None:
        """`columns` are those of `schema` that are read."""
        self._file = ByPosition(file)
        self._size = self._file.size
        self._largest = 0
        self._wanted = _buffers_of(schema, columns)

    def check_stream(self) -> Iterator[None]:
        """Each step looks at all messages up to the next record batch and at that batch. Raises InvalidInput where one
        becomes too large. What is no message is left to pyarrow, which says why."""
        at = 0
        while (message := self._message(at)) is not None:
            kind, at = message
            if kind == _BATCH:
                yield

    def check_file(self) -> int:
        """Look at all dictionaries and record batches of a file, whose footer says where they are; returns how many
        bytes the largest compressed one becomes. Raises as `check_stream`."""
        size = self._size
        length, magic = struct.unpack("<i6s", self._read(size - 10, 10) or bytes(10))
        if magic != _MAGIC or not 0 < length < min(size, _MOST_METADATA_BYTES):
            return 0
        try:
            footer = _Table.root(self._read(size - 10 - length, length) or b"")
            blocks = [*footer.structs(2, "<qi4xq"), *footer.structs(3, "<qi4xq")]
        except struct.error:
            return 0
        for offset, _, _ in blocks:
            self._message(offset)
        return self._largest

    def _message(self, at: int) -> tuple[int, int] | None:
        """The kind of the message at a place of the file, and the place behind it; None where there is none."""
        head = self._read(at, 8)
        if head is None:
            return None
        length, behind = struct.unpack("<II", head)
        begin = at + 4
        if length == _LONG_HEAD:
            length, begin = behind, at + 8
        if not 0 < length <= _MOST_METADATA_BYTES or (data := self._read(begin, length)) is None:
            return None
        try:
            message = _Table.root(data)
            kind, body = message.number(1, "<B"), begin + length
            inner = message.table(2)
            if inner is not None and kind == _BATCH:
                self._check(inner, body, self._wanted)
            elif inner is not None and kind == _DICTIONARY and (batch := inner.table(1)) is not None:
                self._check(batch, body, None)
            return kind, body + max(0, message.number(3))
        except struct.error:
            return None

    def _check(self, batch: _Table, body: int, wanted: Collection[int] | None) -> None:
        """Raise InvalidInput where the buffers of a batch that are read become too large; None reads all of them."""
        if batch.table(3) is None:  # what is not compressed is as large as the file says
            return
        becomes = 0
        for number, (offset, length) in enumerate(batch.structs(2, "<qq")):
            if (wanted is None or number in wanted) and length >= 8 and (head := self._read(body + offset, 8)):
                becomes += max(length, struct.unpack("<q", head)[0])
        self._largest = max(self._largest, becomes)
        if becomes > MOST_BATCH_BYTES:
            raise InvalidInput(
                f"holds a compressed record batch that becomes {becomes:,} bytes, and at most {MOST_BATCH_BYTES:,} are "
                "decoded at a time: write it in batches of fewer rows, or without compression"
            )

    def _read(self, at: int, length: int) -> bytes | None:
        """So many bytes of the file, None where it has fewer."""
        if at < 0 or length <= 0:
            return None
        data = self._file.read(at, length)
        return data if len(data) == length else None


def _buffers_of(schema: Any, columns: Collection[str]) -> Collection[int] | None:
    """The numbers of the buffers of some columns in a batch; None where that depends on more than their types."""
    pyarrow = required("pyarrow", "tables")
    types, wanted, at = pyarrow.types, set[int](), 0
    for field in schema:
        kind = field.type
        plain = types.is_primitive(kind) or types.is_decimal(kind) or types.is_dictionary(kind)
        words = types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind)
        if not (plain or words or types.is_large_binary(kind) or types.is_null(kind)):
            return None
        count = 0 if types.is_null(kind) else 2 if plain else 3
        if field.name in columns:
            wanted.update(range(at, at + count))
        at += count
    return wanted
