"""Blocks of text whose wanted columns hold plain decimal numbers or words: compiled code reads them (`text_lines.py`),
several times as fast as pyarrow.

The values, nulls and errors are pyarrow's. A block that is anything else, such as one whose rows have different
lengths, is left to pyarrow as a whole; a word that is no plain number, or may be a null, is left to it alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.formats.text_blocks import COMPILED, Lines
from warpfold.kernels.formats.text_quotes import QuotedText
from warpfold.kernels.formats.text_types import TextColumns
from warpfold.kernels.machine.extras import required

_PLAIN = ("double", "int64", "string")
"""The types of pyarrow that are read here, in the order of FLOAT, INTEGER and WORD of `text_lines`."""

_ROWS_A_DOUBT = 16
"""A block in which one word of fewer rows is doubtful is left to pyarrow, which is then as fast."""

_INEXACT = int(np.float64(2.0**53).view(np.int64))
"""The bits of 2**53: all integers below it are exact in float64."""

Words = Callable[[bytes, str], Any]
"""Reads words of the named column, one a line, as an array of its type; None where a word is not of the type."""


@dataclass(frozen=True, slots=True)
class TextLayout:
    """The names of the columns, and how the text is to be read."""

    names: Sequence[str]
    dialect: Dialect

    def places(self, types: Mapping[str, Any]) -> dict[int, str] | None:
        """The columns that `types` names by their place, in ascending order; None where one is not of a plain type or
        its name stands twice, where numbers may hold the delimiter, or where a null may be written as a number."""
        delimiter, quote, decimal = self.dialect.delimiter, self.dialect.quote, self.dialect.decimal
        if delimiter in f"0123456789+-eE\r\n{quote}{decimal}" or self.dialect.has_numbers_as_nulls:
            return None
        if any(str(kind) not in _PLAIN or self.names.count(name) != 1 for name, kind in types.items()):
            return None
        return dict(sorted((self.names.index(name), name) for name in types))


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """The words of some columns in a block of `text`. `types` has pyarrow's type of each column by its name. `bits`,
    shape (columns, rows), has the words as `text_lines.scan` gives them, with the columns in the order of `names`, and
    `doubts` are the doubtful words."""

    text: NDArray[np.uint8]
    types: Mapping[str, Any]
    names: Sequence[str]
    bits: NDArray[np.int64]
    doubts: NDArray[np.int64]
    is_beyond: bool
    """Whether a float is beyond the integers that float64 holds exactly."""

    def numbers(self) -> NDArray[Any] | None:
        """The numbers of a single column, shape (rows,), float64 or int64; None where a word is doubtful, or a float is
        beyond the integers that float64 holds exactly.

        Pyarrow is not asked: every call that gives the interpreter's lock away waits for the lock again, which costs
        threads that parse small blocks more than the parsing does."""
        (name,), (bits,) = self.names, self.bits
        kind = str(self.types[name])
        if len(self.doubts) or self.is_beyond or kind == "string":
            return None
        numbers: NDArray[Any] = bits.view(np.float64) if kind == "double" else bits
        return numbers

    def table(self, words: Words) -> Any:
        """All columns as a table of pyarrow; None where pyarrow must read the block."""
        pyarrow, arrays = required("pyarrow", "tables"), dict[str, Any]()
        for place, name in enumerate(self.names):
            kind, doubts, read = self.types[name], self.doubts[self.doubts[:, 0] == place], None
            if len(doubts):
                doubtful = [self.text[begin:end].tobytes() for begin, end in doubts[:, 2:].tolist()]
                read = words(b"\n".join(doubtful) + b"\n", name)
                if read is None:
                    return None
            bits, rows = self.bits[place], doubts[:, 1]
            try:
                arrays[name] = (
                    _words(self.text, bits, rows, read)
                    if str(kind) == "string"
                    else _numbers(bits.view(np.float64) if str(kind) == "double" else bits, rows, read)
                )
            except pyarrow.ArrowInvalid:  # a word is not UTF-8
                return None
        return pyarrow.table({name: arrays[name] for name in self.types})


def plain_columns(lines: Lines, layout: TextLayout, columns: TextColumns, *, headed: bool) -> PlainColumns | None:
    """The columns in a block of whole lines; None where pyarrow must read the block. A block that is
    `headed` begins with the names of the columns."""
    required("numba", "loops")
    from warpfold.kernels.formats import text_lines as compiled

    types = columns.types
    places = layout.places(types)
    dialect = layout.dialect
    start = _behind_first_line(lines.text, dialect) if headed else 0
    if not places or start is None:
        return None
    text = np.frombuffer(lines.text if lines.text[-1] == 10 else bytes(lines.text) + b"\n", np.uint8)
    address = text.ctypes.data
    bits = np.empty((len(places), lines.most), np.int64)
    doubts = np.empty((lines.most // _ROWS_A_DOUBT + 16, compiled.DOUBT), np.int64)
    of_type = dict(zip(_PLAIN, (compiled.FLOAT, compiled.INTEGER, compiled.WORD), strict=True))
    kinds = [of_type[str(types[name])] for name in places.values()]
    kinds = [
        compiled.KEY if kind == compiled.INTEGER and name in columns.keys else kind
        for kind, name in zip(kinds, places.values(), strict=True)
    ]
    delimiter, ends, nulls = ord(dialect.delimiter), np.zeros(256, np.bool_), np.zeros(256, np.int64)
    ends[[delimiter, *b"\r\n", *dialect.quote.encode()]] = True
    for word in filter(None, map(str.encode, dialect.nulls_of_words)):
        nulls[word[0]] = max(nulls[word[0]], len(word))
    rows, doubtful, largest = compiled.scan(
        address,
        text.size,
        start,
        delimiter,
        dialect.quote_byte,
        ord(dialect.decimal),
        ends,
        nulls,
        len(layout.names),
        np.array(list(places), np.int64),
        np.array(kinds),
        bits,
        doubts,
    )
    if rows == compiled.NOT_PLAIN:
        return None
    return PlainColumns(text, types, list(places.values()), bits[:, :rows], doubts[:doubtful], largest >= _INEXACT)


def _numbers(numbers: NDArray[Any], rows: NDArray[np.int64], read: Any) -> Any:
    """An array of numbers, of which pyarrow has `read` those of some rows (None for no rows)."""
    pyarrow, missing = required("pyarrow", "tables"), None
    if read is not None:
        missing = np.zeros(numbers.size, np.bool_)
        missing[rows] = read.is_null().to_numpy(zero_copy_only=False)
        numbers[rows] = read.fill_null(0).to_numpy()
    return pyarrow.array(numbers, mask=missing)


def _words(text: NDArray[np.uint8], places: NDArray[np.int64], rows: NDArray[np.int64], read: Any) -> Any:
    """An array of the words at `places`, of which pyarrow has `read` those of some rows (None for no rows)."""
    required("numba", "loops")
    from warpfold.kernels.formats import text_lines as compiled

    pyarrow = required("pyarrow", "tables")
    lengths = (places & 0xFFFFFFFF) - (places >> 32)
    lengths[rows] = 0
    offsets = np.zeros(places.size + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    copied = np.empty(int(offsets[-1]), np.uint8)
    compiled.copy_words(text.ctypes.data, places, offsets, copied)
    array = pyarrow.StringArray.from_buffers(places.size, pyarrow.py_buffer(offsets), pyarrow.py_buffer(copied))
    array.validate(full=True)
    if read is None:
        return array
    doubtful = np.zeros(places.size, np.bool_)
    doubtful[rows] = True
    return required("pyarrow.compute", "tables").replace_with_mask(array, doubtful, read)


def _behind_first_line(lines: memoryview, dialect: Dialect) -> int | None:
    """Where the second line begins; None where pyarrow may see another first line."""
    head = bytes(lines[: 1 << 16])
    end = QuotedText(head, dialect).first_end(b"\n") + 1
    line = head[:end].removesuffix(b"\n").removesuffix(b"\r")  # of two \r the second ends an empty line
    return end if line and b"\r" not in line else None


def compile_now() -> None:
    """Compile what reads plain text, or load it where it was compiled before, and mark that short texts need not do
    without."""
    pyarrow = required("pyarrow", "tables")
    required("numba", "loops")
    from warpfold.kernels.formats import text_lines as compiled
    from warpfold.kernels.machine.jit import mark_compiled

    dialect = Dialect()
    lines, layout = Lines.of(memoryview(b"1\n"), dialect), TextLayout(("x",), dialect)
    for kind in (pyarrow.float64(), pyarrow.string()):
        columns = plain_columns(lines, layout, TextColumns({"x": kind}), headed=False)
        assert columns is not None, "a number is plain"
        if columns.numbers() is None:
            columns.table(lambda *_: None)
    address = np.frombuffer(lines.text, np.uint8).ctypes.data
    compiled.end_within_quotes(address, len(lines.text), ord(dialect.delimiter), dialect.quote_byte)
    mark_compiled(COMPILED)
