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

from warpfold.kernels.extras import required

_PLAIN = ("double", "int64", "string")
"""The types of pyarrow that are read here, in the order of FLOAT, INTEGER and WORD of `text_lines`."""

_ROWS_A_DOUBT = 16
"""A block in which one word of fewer rows is doubtful is left to pyarrow, which is then as fast."""

Words = Callable[[bytes, Any], Any]
"""Reads words, one a line, as an array of a type of pyarrow; None where a word is not of the type."""


@dataclass(frozen=True, slots=True)
class TextLayout:
    """The names of the columns, and the byte between two words of a row."""

    names: Sequence[str]
    delimiter: str

    def plain_columns(self, types: Mapping[str, Any]) -> dict[int, str] | None:
        """The columns that `types` names by their place, in ascending order; None where one is not of a plain type or
        its name stands twice, or where numbers may hold the delimiter."""
        if len(self.delimiter.encode()) != 1 or self.delimiter in '0123456789+-.eE"\r\n':
            return None
        if any(str(kind) not in _PLAIN or self.names.count(name) != 1 for name, kind in types.items()):
            return None
        return dict(sorted((self.names.index(name), name) for name in types))


def plain_table(lines: memoryview, layout: TextLayout, types: Mapping[str, Any], words: Words, *, headed: bool) -> Any:
    """The columns of `types` in a block of whole lines, as a table of pyarrow; None where pyarrow must read the block.
    A block that is `headed` begins with the names of the columns."""
    pyarrow = required("pyarrow", "tables")
    columns = layout.plain_columns(types)
    if not columns:
        return None
    text = np.frombuffer(lines if lines[-1] == 10 else bytes(lines) + b"\n", np.uint8)
    start = _behind_first_line(lines) if headed else 0
    if start is None:
        return None
    scanned = _scanned(text, start, layout, [str(types[name]) for name in columns.values()], list(columns))
    if scanned is None:
        return None
    arrays = dict[str, Any]()
    for place, name in enumerate(columns.values()):
        doubts, read = scanned.doubts[scanned.doubts[:, 0] == place], None
        if len(doubts):
            read = words(b"\n".join(lines[begin:end] for begin, end in doubts[:, 2:].tolist()) + b"\n", types[name])
            if read is None:
                return None
        bits, rows = scanned.bits[place], doubts[:, 1]
        try:
            arrays[name] = (
                _words(text, bits, rows, read)
                if str(types[name]) == "string"
                else _numbers(bits.view(np.float64) if str(types[name]) == "double" else bits, rows, read)
            )
        except pyarrow.ArrowInvalid:  # a word is not UTF-8
            return None
    return pyarrow.table({name: arrays[name] for name in types})


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
    from warpfold.kernels.formats import text_lines as compiled  # it imports Numba

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


@dataclass(frozen=True, slots=True)
class _Scanned:
    """The words of a block as `text_lines.scan` gives them, shape (columns, rows), and the doubtful ones."""

    bits: NDArray[np.int64]
    doubts: NDArray[np.int64]


def _scanned(
    text: NDArray[np.uint8], start: int, layout: TextLayout, types: Sequence[str], wanted: Sequence[int]
) -> _Scanned | None:
    """The words of the `wanted` columns, of these types; None where the block is not plain."""
    from warpfold.kernels.formats import text_lines as compiled  # it imports Numba

    most = int(np.count_nonzero(text == 10))
    bits = np.empty((len(wanted), most), np.int64)
    doubts = np.empty((most // _ROWS_A_DOUBT + 16, compiled.DOUBT), np.int64)
    kinds = np.array([(compiled.FLOAT, compiled.INTEGER, compiled.WORD)[_PLAIN.index(name)] for name in types])
    delimiter, ends = ord(layout.delimiter), np.zeros(256, np.bool_)
    ends[[delimiter, *b'\r\n"']] = True
    places = np.array(wanted, np.int64)
    rows, doubtful = compiled.scan(
        text.ctypes.data, text.size, start, delimiter, ends, len(layout.names), places, kinds, bits, doubts
    )
    return None if rows == compiled.NOT_PLAIN else _Scanned(bits[:, :rows], doubts[:doubtful])


def _behind_first_line(lines: memoryview) -> int | None:
    """Where the second line begins; None where pyarrow may see another first line."""
    head = bytes(lines[: 1 << 16])
    end = head.find(b"\n") + 1
    line = head[:end].rstrip(b"\r\n")
    return end if line and b"\r" not in line and line.count(b'"') % 2 == 0 else None


def compile_now() -> None:
    """Compile what reads plain text, or load it where it was compiled before."""
    scanned = _scanned(np.frombuffer(b"1\n", np.uint8), 0, TextLayout(("x",), ","), ["double"], [0])
    assert scanned is not None, "a number is plain"
    from warpfold.kernels.formats import text_lines as compiled

    compiled.copy_words(0, scanned.bits[0], np.zeros(2, np.int32), np.empty(0, np.uint8))
