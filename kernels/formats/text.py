"""Columns of CSV and TSV files, which may be compressed by gzip or zstd.

Blocks of lines (`text_blocks.py`) are parsed apart, each by one thread.

Text has no dtypes. The dtype of a column is inferred from its first block, or the request names it; a later value that
the dtype does not hold is an error and never changes the dtype. An integer is a number without a point and without an
exponent, and no integer is rounded: pyarrow would read one beyond int64 as the nearest float64. A number beyond the
range of its float is an error, too: pyarrow would read it as infinity, which only the word for infinity means here.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cores import usable_cores
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.extras import required
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.formats.plain_text import PlainColumns, TextLayout, plain_columns
from warpfold.kernels.formats.row_filter import columns_of
from warpfold.kernels.formats.signature import Format
from warpfold.kernels.formats.tables import ColumnWanted, Reading
from warpfold.kernels.formats.text_blocks import Block, TextLines
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.sections import in_turn
from warpfold.kernels.sequential import Section, SequentialSource, Tally

NULLS = ("", "NA", "N/A", "n/a", "#N/A", "NULL", "null")
"""The texts that are read as a null. NaN is a number here."""

_INFERRED_BYTES = 1 << 18
"""The bytes that one thread parses at a time of the block that tells the dtypes."""

_ROW = re.compile(r"Row #(\d+)")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DIGIT = re.compile(r"[0-9]")
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
    nbytes = max(1, 4 * text.lines.block_bytes * len(types) // len(text.names))

    def sections() -> Iterator[Section]:
        with damaged("cannot be read as a table of text", OSError, ValueError):
            for number, block in enumerate(text.lines.blocks()):
                yield Section(partial(read, number, block), nbytes)

    def read(number: int, block: Block) -> Iterator[NDArray[Any]]:
        lines = block()
        plain = text.plain(number, lines, types)
        numbers = plain.numbers() if plain is not None and reading.takes_all_numbers else None
        if numbers is None:
            yield from reading.elements(batches(number, lines, plain), 0, tally)
        else:
            yield numbers

    def batches(number: int, lines: memoryview, plain: PlainColumns | None) -> Iterator[Any]:
        try:
            yield from text.exact(number, lines, types, plain)
        except pyarrow.ArrowInvalid as error:
            why = str(error).splitlines()[0][:300]
            of_dtype = hint if "conversion error" in why else ""
            raise InvalidInput(f"cannot be read as a table of text: {why}{of_dtype}") from None

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
        self.lines = TextLines(file, packed)
        self._parsing = csv.ParseOptions(delimiter=delimiter)
        self.names: Sequence[str] = self._schema_in(self.lines.head(), None, at_once=True).names
        self._layout = TextLayout(self.names, delimiter)
        # In a table of a single column an empty line is a null. In a table of several columns it is not a row.
        self._lines_are_rows = len(self.names) == 1
        self._parsing = csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=not self._lines_are_rows)

    def schema(self, columns: Sequence[str] | None = None) -> Any:
        """The schema of pyarrow that is inferred from the first block, for the named columns or for all. Raises the
        errors that pyarrow raises for the text, and InvalidInput where a line is too long."""
        pyarrow = required("pyarrow", "tables")
        if columns is not None:
            with suppress(pyarrow.ArrowInvalid):  # reading the whole block gives a better message
                schema = self._schema_in(self.lines.sample(), columns, at_once=True)
                if all(map(pyarrow.types.is_floating, schema.types)):
                    return schema  # later numbers turn no floats into another dtype
        text = self.lines.first_block()
        try:
            return self._schema_in(text, columns, at_once=False)
        except pyarrow.ArrowInvalid:  # of a wrong line a single thread can tell the row
            return self._schema_in(text, columns, at_once=True)

    def _schema_in(self, text: memoryview, columns: Sequence[str] | None, *, at_once: bool) -> Any:
        """The schema of the columns (None for all) that is inferred from `text`, which one thread or several parse."""
        pyarrow, csv = required("pyarrow", "tables"), required("pyarrow.csv", "tables")
        part = len(text) + 1 if at_once else _INFERRED_BYTES
        reading = csv.ReadOptions(use_threads=part < len(text), block_size=part)
        converting = self._converting({} if columns is None else dict.fromkeys(columns))
        return csv.read_csv(pyarrow.BufferReader(text), reading, self._parsing, converting).schema

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

    def _parsed(self, number: int, block: memoryview, types: dict[str, Any]) -> Any:
        """The columns that `types` names in the block with this number, as a table."""
        pyarrow, csv = required("pyarrow", "tables"), required("pyarrow.csv", "tables")
        names = self.names if number else None
        reading = csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names)
        try:
            return csv.read_csv(pyarrow.BufferReader(block), reading, self._parsing, self._converting(types))
        except pyarrow.ArrowInvalid as error:
            raise pyarrow.ArrowInvalid(self._by_rows_of_the_file(str(error), number)) from None

    def _words(self, words: bytes, kind: Any) -> Any:
        """The words of a column, one a line, as an array of the type `kind`; None where one is not of the type."""
        pyarrow, csv = required("pyarrow", "tables"), required("pyarrow.csv", "tables")
        reading = csv.ReadOptions(use_threads=False, block_size=len(words) + 1, column_names=["word"])
        parsing = csv.ParseOptions(delimiter=self._layout.delimiter, ignore_empty_lines=False)
        try:
            table = csv.read_csv(pyarrow.BufferReader(words), reading, parsing, self._converting({"word": kind}))
        except pyarrow.ArrowInvalid:
            return None
        return table.column("word").combine_chunks()

    def batches(self, types: dict[str, Any]) -> Iterator[Any]:
        """Record batches of the columns that `types` names, of the whole file in order. Threads parse the next blocks
        meanwhile. Raises as `exact`."""
        threads = usable_cores()
        with ThreadPoolExecutor(threads, "decode") as pool:
            waiting: deque[Future[list[Any]]] = deque()
            try:
                for number, block in enumerate(self.lines.blocks()):
                    waiting.append(pool.submit(self._listed, number, block, types))
                    if len(waiting) > threads:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for later in waiting:
                    later.cancel()

    def _listed(self, number: int, block: Block, types: dict[str, Any]) -> list[Any]:
        lines = block()
        return list(self.exact(number, lines, types, self.plain(number, lines, types)))

    def plain(self, number: int, lines: memoryview, types: dict[str, Any]) -> PlainColumns | None:
        """The columns in the block with this number, where its text is plain."""
        return plain_columns(lines, self._layout, types, headed=number == 0) if lines else None

    def exact(self, number: int, lines: memoryview, types: dict[str, Any], plain: PlainColumns | None) -> Iterator[Any]:
        """Record batches of the columns in the block with this number; `plain` has its words where it is plain. Raises
        InvalidInput where a float would round an integer or is too small for a number, and the errors that pyarrow
        raises for the text. Only a float above the integers that its format holds exactly, infinity among them, can be
        such a number. So the text is looked at again only where a block has such a float."""
        if not lines:
            return
        if number and not self._lines_are_rows and lines[0] in b"\r\n" and not bytes(lines).strip(b"\r\n"):
            return  # pyarrow takes a block of nothing but empty lines for an empty file
        pyarrow = required("pyarrow", "tables")
        table = None if plain is None else plain.table(self._words)
        if table is None:
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
        before = sum(bytes(block()).count(b"\n") for block in islice(self.lines.blocks(), number))
        return _ROW.sub(lambda match: f"Row #{int(match[1]) + before:,}", error)


def _beyond(column: Any, precision: int) -> NDArray[np.intp]:
    """The rows of floats above the integers that a significand of `precision` bits holds exactly."""
    values, bound = column.to_numpy(), 2.0**precision
    if values.size and -bound < values.min() and values.max() < bound:  # false where the maximum is a NaN
        return np.empty(0, np.intp)
    return np.flatnonzero(np.abs(values) >= bound)


def _check(name: str, words: Any, values: NDArray[Any], rows: NDArray[np.intp]) -> None:
    """Raise InvalidInput if the text of one of `rows` is an integer that a float changed, or a number beyond the
    range of the float."""
    for row in rows:
        word = words[int(row)].as_py().strip()
        if np.isinf(values[row]):
            if _DIGIT.search(word):
                raise InvalidInput(
                    f"holds {word[:60]} in column {name!r}, which is beyond the range of {values.dtype}", "dtype"
                )
        elif _INTEGER.fullmatch(word) and int(word) != int(values[row]):
            raise InvalidInput(
                f"holds {word[:60]} in column {name!r}, an integer that {values.dtype} would round; `dtype` may name "
                "int64 or uint64",
                "dtype",
            )
