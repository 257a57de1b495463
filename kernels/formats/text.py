"""Columns of CSV and TSV files, which may be compressed by gzip or zstd.

Text has no dtypes. The first block of a column tells its dtype, or the request names it; a later value that the dtype
does not hold is an error and never changes the dtype. An integer is a number without a point and without an exponent,
and no integer is rounded: pyarrow would read one beyond int64 as the nearest float64.
"""

import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.extras import required
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.formats.row_filter import columns_of
from warpfold.kernels.formats.signature import Format
from warpfold.kernels.formats.tables import ColumnWanted, Reading, random_access
from warpfold.kernels.sections import in_turn
from warpfold.kernels.sequential import Section, SequentialSource, Tally

NULLS = ("", "NA", "N/A", "n/a", "#N/A", "NULL", "null")
"""What is read as a null. NaN is a number here."""

_FIRST_BYTES = 1 << 22
"""The block that tells the dtypes, and the longest line."""

_BLOCK_BYTES = 1 << 21
"""What one thread parses at a time."""

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
        inferred = text.schema
        name = chosen_name(wanted.column, inferred.names, "a column", "column")
        needed = {name} | (set() if wanted.rows is None else columns_of(wanted.rows) & set(inferred.names))
        types = {column: inferred.field(column).type for column in inferred.names if column in needed}
        types[name] = _type_of(name, types[name], wanted.dtype)
        for column, kind in types.items():
            if pyarrow.types.is_null(kind):
                types[column] = pyarrow.string()
        schema = pyarrow.schema([(column, types.get(column, inferred.field(column).type)) for column in inferred.names])
        reading = Reading.of(schema, wanted)
    hint = "" if wanted.dtype else "; the first block told the dtype, and `dtype` names another"
    likely = file.seek(0, 2) // 8

    tally = Tally()

    def sections() -> Iterator[Section]:
        with damaged("cannot be read as a table of text", OSError, ValueError):
            for number, block in enumerate(text.blocks()):
                yield Section(partial(read, number, block), 3 * len(block))

    def read(number: int, block: memoryview) -> Iterator[NDArray[Any]]:
        return reading.elements(batches(number, block), 0, tally)

    def batches(number: int, block: memoryview) -> Iterator[Any]:
        try:
            yield from text.exact(number, block, types)
        except pyarrow.ArrowInvalid as error:
            why = str(error).splitlines()[0][:300]
            raise InvalidInput(f"cannot be read as a table of text: {why}{hint}") from None

    return SequentialSource(reading.dtype, lambda: in_turn(sections(), tally), None, likely, tally)


def first_block(file: BinaryIO, packed: Format | None, delimiter: str) -> Any:
    """The columns of text as their first block tells their types: a schema of pyarrow."""
    return TextFile(file, packed, delimiter).schema


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
    """A file of text, to be read from its beginning as often as needed."""

    def __init__(self, file: BinaryIO, packed: Format | None, delimiter: str) -> None:
        csv = required("pyarrow.csv", "tables")
        self._file, self._packed, self._delimiter = file, packed, delimiter
        self._parsing = csv.ParseOptions(delimiter=delimiter)
        self.schema = csv.open_csv(
            self._stream(), csv.ReadOptions(block_size=_FIRST_BYTES), self._parsing, self._converting({})
        ).schema
        # An empty line of a single column is a null; of several columns it is none of the table's rows.
        self._lines_are_rows = len(self.schema.names) == 1
        self._parsing = csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=not self._lines_are_rows)

    def _stream(self) -> Any:
        stream = random_access(self._file)
        if self._packed is None:
            return stream
        return required("pyarrow", "tables").CompressedInputStream(stream, self._packed.value)

    @staticmethod
    def _converting(types: dict[str, Any]) -> Any:
        return required("pyarrow.csv", "tables").ConvertOptions(
            include_columns=list(types),
            column_types=types,
            null_values=list(NULLS),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    def blocks(self) -> Iterator[memoryview]:
        """The text in blocks of whole lines; the first begins with the names of the columns. Raises InvalidInput where
        a line is too long."""
        stream, rest = self._stream(), b""
        while read := stream.read(_BLOCK_BYTES):
            text = rest + read
            end = text.rfind(b"\n") + 1 or text.rfind(b"\r", 0, -1) + 1  # behind a last \r may come its \n
            if end:
                yield memoryview(text)[:end]
            elif len(text) > _FIRST_BYTES:
                raise InvalidInput(f"cannot be read as a table of text: a line has more than {_FIRST_BYTES:,} bytes")
            rest = text[end:]
        if rest:
            yield memoryview(rest)

    def _parsed(self, number: int, block: memoryview, types: dict[str, Any]) -> Any:
        """The columns that `types` names, of the block with this number: a table of one batch or none."""
        pyarrow, csv = required("pyarrow", "tables"), required("pyarrow.csv", "tables")
        names = self.schema.names if number else None
        reading = csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names)
        try:
            return csv.read_csv(pyarrow.BufferReader(block), reading, self._parsing, self._converting(types))
        except pyarrow.ArrowInvalid as error:
            raise pyarrow.ArrowInvalid(self._by_rows_of_the_file(str(error), number)) from None

    def batches(self, types: dict[str, Any]) -> Iterator[Any]:
        """Record batches of the columns that `types` names, of the whole file in order. Raises as `exact`."""
        for number, block in enumerate(self.blocks()):
            yield from self.exact(number, block, types)

    def exact(self, number: int, block: memoryview, types: dict[str, Any]) -> Iterator[Any]:
        """Record batches of the columns in the block with this number. Raises InvalidInput where a float would round an
        integer, and what pyarrow raises of the text.

        Only a float beyond the integers that its format holds can have rounded one: the text is looked at again only
        where a block has such a float."""
        if number and not self._lines_are_rows and block[0] in b"\r\n" and not bytes(block).strip(b"\r\n"):
            return  # pyarrow takes a block of nothing but empty lines for an empty file
        pyarrow = required("pyarrow", "tables")
        table = self._parsed(number, block, types)
        floats = {name: _PRECISION[str(kind)] for name, kind in types.items() if str(kind) in _PRECISION}
        suspects = {name: rows for name, bits in floats.items() if (rows := _beyond(table.column(name), bits)).size}
        if suspects:
            words = self._parsed(number, block, {name: pyarrow.string() for name in suspects})
            for name, rows in suspects.items():
                _check(name, words.column(name), table.column(name).to_numpy(), rows)
        yield from table.to_batches()

    def _by_rows_of_the_file(self, error: str, number: int) -> str:
        """An error of the block with this number, which counts the rows of that, with the row of the file."""
        before = sum(block.tobytes().count(b"\n") for block in islice(self.blocks(), number))
        return _ROW.sub(lambda match: f"Row #{int(match[1]) + before:,}", error)


def _beyond(column: Any, precision: int) -> NDArray[np.intp]:
    """The rows of finite floats beyond the integers that a significand of `precision` bits holds."""
    values, bound = column.to_numpy(), 2.0**precision
    if values.size and -bound < values.min() and values.max() < bound:  # not true where there is a NaN
        return np.empty(0, np.intp)
    return np.flatnonzero(np.isfinite(values) & (np.abs(values) >= bound))


def _check(name: str, words: Any, values: NDArray[Any], rows: NDArray[np.intp]) -> None:
    """Raise InvalidInput if one of `rows` was an integer, and is another number as a float."""
    for row in rows:
        word = words[int(row)].as_py().strip()
        if _INTEGER.fullmatch(word) and int(word) != int(values[row]):
            raise InvalidInput(
                f"holds {word[:60]} in column {name!r}, an integer that {values.dtype} would round; `dtype` may name "
                "int64 or uint64",
                "dtype",
            )
