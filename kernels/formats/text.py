"""Columns of CSV and TSV files, which may be compressed by gzip or zstd.

Blocks of rows (`text_blocks.py`) are parsed apart, each by one thread. What a column holds is told by its first block
(`text_types.py`), or by the request; a later value of another kind is an error and never changes the dtype.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.formats.frames import Frame, filtered, with_faults
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.formats.plain_text import PlainColumns, TextLayout, plain_columns
from warpfold.kernels.formats.row_filter import Condition, columns_of, compared_with_words
from warpfold.kernels.formats.signature import Format
from warpfold.kernels.formats.tables import ColumnWanted, Reading
from warpfold.kernels.formats.text_blocks import Block, Lines, TextLines
from warpfold.kernels.formats.text_quotes import QuotedText
from warpfold.kernels.formats.text_types import (
    PRECISION,
    TextColumns,
    TextTypes,
    beyond,
    check_floats,
    check_integers,
    has_hexadecimals,
    key_integers,
    typed,
)
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.machine.extras import required
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.sources.sections import in_turn
from warpfold.kernels.sources.sequential import Section, SequentialSource, Tally

_INFERRED_BYTES = 1 << 18
"""The bytes that one thread parses at a time of the block that tells the dtypes."""

MOST_COLUMNS = 1 << 16
"""The most columns of a table of text: the reader takes some 6 KiB for each."""

_LINE_END = re.compile(rb"[\r\n]")
_ROW = re.compile(r"Row #(\d+)")


def open_text(file: BinaryIO, packed: Format | None, wanted: ColumnWanted) -> SequentialSource:
    """The elements of a column of text whose first line names the columns. Raises InvalidInput."""
    pyarrow = required("pyarrow", "tables")
    if wanted.dialect is None:
        raise InvalidInput("is in none of the formats that can be read")
    with damaged("cannot be read as a table of text", pyarrow.ArrowException, OSError, ValueError):
        text = TextFile(file, packed, wanted.dialect)
        name = chosen_name(wanted.column, text.names, "a column", "column")
        needed = {name} | (set() if wanted.rows is None else columns_of(wanted.rows))
        inferred = text.types([column for column in text.names if column in needed])
        words = compared_with_words(wanted.rows) - {name}
        types = {column: inferred.of_filter(column, words) for column in inferred.schema.names}
        why = None if wanted.dtype else text.why_refused(inferred, name)
        if why is not None:
            raise InvalidInput(why, "column")
        types[name] = inferred.of_values(name, wanted.dtype)
        schema = pyarrow.schema([(column, types.get(column, pyarrow.null())) for column in text.names])
        reading = Reading.of(schema, wanted)
    hint = "" if wanted.dtype else "; the first block told the dtype, and `dtype` names another"
    return _source(text, TextColumns(types), hint, text.lines.size // 8, reading)


def _source(text: "TextFile", columns: TextColumns, hint: str, likely: int, reading: Reading) -> SequentialSource:
    pyarrow, tally = required("pyarrow", "tables"), Tally(null_words=text.dialect.nulls_of_numbers)
    # A cell takes two bytes of text or more, and eight in memory.
    nbytes = max(1, 4 * text.lines.block_bytes * len(columns.types) // len(text.names))

    def sections() -> Iterator[Section]:
        with damaged("cannot be read as a table of text", OSError, ValueError):
            for number, block in enumerate(text.lines.blocks()):
                yield Section(partial(read, number, block), nbytes)

    def read(number: int, block: Block) -> Iterator[NDArray[Any]]:
        lines = block()
        plain = text.plain(number, lines, columns)
        numbers = plain.numbers() if plain is not None and reading.takes_all_numbers else None
        if numbers is None:
            yield from reading.elements(batches(number, lines, plain), 0, tally)
        else:
            yield numbers

    def batches(number: int, lines: Lines, plain: PlainColumns | None) -> Iterator[Any]:
        try:
            yield from text.exact(number, lines, columns, plain)
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
        nulls=reading.with_nulls(partial(_source, text, columns, hint, likely)),
    )


def first_block(file: BinaryIO, packed: Format | None, dialect: Dialect) -> Any:
    """The columns of text as their first block tells their types: a schema of pyarrow."""
    return TextFile(file, packed, dialect).types().schema


def open_text_frame(file: BinaryIO, packed: Format | None, rows: Condition | None, dialect: Dialect) -> Frame:
    """The columns of a table of text, of the rows that fulfil a condition. Raises InvalidInput."""
    pyarrow = required("pyarrow", "tables")
    with damaged("cannot be read as a table of text", pyarrow.ArrowException, OSError, ValueError):
        text = TextFile(file, packed, dialect)
        inferred = text.types()
    words = compared_with_words(rows)
    types = {name: inferred.of_filter(name, words) for name in set(text.names) if text.names.count(name) == 1}
    frame = _of_text(text, types, rows, Tally(null_words=dialect.nulls_of_numbers))
    return replace(frame, why_refused=partial(text.why_refused, inferred))


def _of_text(
    text: "TextFile", types: Mapping[str, Any], rows: Condition | None, tally: Tally, keys: frozenset[str] = frozenset()
) -> Frame:
    """The columns of a file of text, by these types."""
    pyarrow = required("pyarrow", "tables")
    # A name that stands twice is refused where it is asked for.
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in text.names])
    with damaged("cannot be read as a table of text", pyarrow.ArrowException, OSError, ValueError):
        condition = filtered(rows, schema)
    needed = set() if rows is None else columns_of(rows)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        read = TextColumns({name: types[name] for name in text.names if name in {*columns, *needed}}, keys)
        for batch in text.batches(read):
            yield (batch if condition is None else batch.filter(condition)).select(list(columns))

    def keyed(names: Sequence[str]) -> Frame:
        with damaged("cannot be read as a table of text", pyarrow.ArrowException, OSError, ValueError):
            as_keys = text.key_types(names)
        return _of_text(text, {**types, **as_keys}, rows, tally, frozenset(names))

    return Frame(schema, with_faults(batches), text.lines.size // 16, tally, make_keyed=keyed)


class TextFile:
    """A file of text, to be read from its beginning as often as needed. `names` are those of its columns.

    Opening the file raises the errors that pyarrow raises for the text, and InvalidInput where a line is too long."""

    def __init__(self, file: BinaryIO, packed: Format | None, dialect: Dialect) -> None:
        self.dialect = dialect
        self.lines = TextLines(file, packed, dialect.delimiter)
        # In a table of a single column an empty line is a null. In a table of several columns it is not a row.
        self._lines_are_rows = False
        head = self.lines.head()
        columns = _first_row(bytes(head)).count(dialect.delimiter.encode()) + 1
        if columns > MOST_COLUMNS:
            raise InvalidInput(f"has {columns:,} columns, and at most {MOST_COLUMNS:,} are read")
        self.names: Sequence[str] = self._read(head, {}, dialect.nulls_of_numbers).column_names
        self._lines_are_rows = len(self.names) == 1
        self._layout = TextLayout(self.names, dialect)

    def types(self, columns: Sequence[str] | None = None) -> TextTypes:
        """The types of the named columns or of all, which the first block tells. Raises the errors that pyarrow raises
        for the text, and InvalidInput where a line is too long."""
        pyarrow = required("pyarrow", "tables")
        if columns is not None:
            with suppress(pyarrow.ArrowInvalid):  # reading the whole block gives a better message
                types = self._typed(self.lines.sample(), columns, at_once=True)
                if all(map(pyarrow.types.is_floating, types.schema.types)) and not types.odd:
                    return types  # later numbers turn no floats into another dtype
        text = self.lines.first_block()
        try:
            return self._typed(text, columns, at_once=False)
        except pyarrow.ArrowInvalid:  # of a wrong line a single thread can tell the row
            return self._typed(text, columns, at_once=True)

    def _typed(self, text: memoryview, columns: Sequence[str] | None, *, at_once: bool) -> TextTypes:
        nulls = self.dialect.nulls_of_numbers
        names = {} if columns is None else dict.fromkeys(columns)
        table = self._read(text, names, nulls, part=None if at_once else _INFERRED_BYTES)
        string = required("pyarrow", "tables").string()
        return typed(table, self.dialect, text, lambda names: self._read(text, dict.fromkeys(names, string), nulls))

    def why_refused(self, types: TextTypes, name: str) -> str | None:
        """Why a column that has numbers is not reduced, where one of its words is the reason."""
        string, nulls = required("pyarrow", "tables").string(), self.dialect.nulls_of_numbers
        if name in self.dialect.words:
            return None
        return types.why_refused(name, lambda: self._read(self.lines.first_block(), {name: string}, nulls).column(name))

    def key_types(self, columns: Sequence[str]) -> dict[str, Any]:
        """The types by which columns are keys: integers if all words of the first block are plain integers, and else
        strings."""
        pyarrow = required("pyarrow", "tables")
        types = dict.fromkeys(columns, pyarrow.string())
        words = self._read(self.lines.first_block(), types, self.dialect.nulls_of_words)
        for name in set(columns) - {*self.dialect.words}:
            column = words.column(name)
            if column.null_count < len(column) and key_integers(column) is not None:
                types[name] = pyarrow.int64()
        return types

    def _read(
        self, text: memoryview, types: dict[str, Any], nulls: Sequence[str], *, part: int | None = None, number: int = 0
    ) -> Any:
        """The columns that `types` names (all if it names none) in the rows `text`, as a table. A type of None is
        inferred. Of the block of this `number`, the first begins with the names. One thread parses the text, or several
        parse parts of so many bytes."""
        pyarrow, csv = required("pyarrow", "tables"), required("pyarrow.csv", "tables")
        quoted = b'"' in bytes(text)
        part = part or len(text) + 1
        reading = csv.ReadOptions(
            use_threads=part < len(text), block_size=part, column_names=self.names if number else None
        )
        parsing = csv.ParseOptions(
            delimiter=self.dialect.delimiter,
            ignore_empty_lines=not self._lines_are_rows,
            newlines_in_values=quoted,
        )
        return csv.read_csv(pyarrow.BufferReader(text), reading, parsing, _converting(types, nulls))

    def _parsed(self, number: int, lines: Lines, columns: TextColumns) -> Any:
        """The columns in the block with this number, as a table."""
        pyarrow, arrays = required("pyarrow", "tables"), dict[str, Any]()
        for types, nulls in columns.by_nulls(self.dialect):
            try:
                table = self._read(lines.text, types, nulls, number=number)
            except pyarrow.ArrowInvalid as error:
                raise pyarrow.ArrowInvalid(self._by_rows_of_the_file(str(error), number)) from None
            arrays |= dict(zip(table.column_names, table.columns, strict=True))
        kinds = {name: kind for name, kind in columns.types.items() if name not in columns.keys}
        integers = [name for name, kind in kinds.items() if pyarrow.types.is_integer(kind)]
        if integers and has_hexadecimals(lines.text):
            words = self._read(lines.text, dict.fromkeys(integers, pyarrow.string()), (), number=number)
            for name in integers:
                check_integers(name, words.column(name))
        return pyarrow.table({name: columns.as_keys(name, arrays[name]) for name in columns.types})

    def _words(self, columns: TextColumns, words: bytes, name: str) -> Any:
        """The words of a column, one a line, as an array of its type; None where one is not of the type."""
        pyarrow, csv = required("pyarrow", "tables"), required("pyarrow.csv", "tables")
        ((types, nulls),) = columns.only(name).by_nulls(self.dialect)
        kind = types[name]
        if pyarrow.types.is_integer(kind) and has_hexadecimals(words):
            return None  # reading the whole block gives the error
        reading = csv.ReadOptions(use_threads=False, block_size=len(words) + 1, column_names=["word"])
        parsing = csv.ParseOptions(
            delimiter=self.dialect.delimiter, ignore_empty_lines=False, newlines_in_values=b'"' in words
        )
        try:
            table = csv.read_csv(pyarrow.BufferReader(words), reading, parsing, _converting({"word": kind}, nulls))
        except pyarrow.ArrowInvalid:
            return None
        return columns.as_keys(name, table.column("word")).combine_chunks()

    def batches(self, columns: TextColumns) -> Iterator[Any]:
        """Record batches of the columns, of the whole file in order. Threads parse the next blocks meanwhile. Raises as
        `exact`."""
        threads = usable_cores()
        with ThreadPoolExecutor(threads, "decode") as pool:
            waiting: deque[Future[list[Any]]] = deque()
            try:
                for number, block in enumerate(self.lines.blocks()):
                    waiting.append(pool.submit(self._listed, number, block, columns))
                    if len(waiting) > threads:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for later in waiting:
                    later.cancel()

    def _listed(self, number: int, block: Block, columns: TextColumns) -> list[Any]:
        lines = block()
        return list(self.exact(number, lines, columns, self.plain(number, lines, columns)))

    def plain(self, number: int, lines: Lines, columns: TextColumns) -> PlainColumns | None:
        """The columns in the block with this number, where its text is plain and compiled functions are to read it."""
        if not lines.text or self.lines.at_once:
            return None
        return plain_columns(lines, self._layout, columns, headed=number == 0)

    def exact(self, number: int, lines: Lines, columns: TextColumns, plain: PlainColumns | None) -> Iterator[Any]:
        """Record batches of the columns in the block with this number; `plain` has its words where it is plain. Raises
        InvalidInput where a float would round an integer or is too small for a number, and the errors that pyarrow
        raises for the text. Only a float above the integers that its format holds exactly, infinity among them, can be
        such a number. So the text is looked at again only where a block has such a float."""
        if not lines.text:
            return
        if number and not self._lines_are_rows and lines.text[0] in b"\r\n" and not bytes(lines.text).strip(b"\r\n"):
            return  # pyarrow takes a block of nothing but empty lines for an empty file
        table = None if plain is None else plain.table(partial(self._words, columns))
        if table is None:
            table = self._parsed(number, lines, columns)
        floats = {name: PRECISION[str(kind)] for name, kind in columns.types.items() if str(kind) in PRECISION}
        suspects = {name: rows for name, bits in floats.items() if (rows := beyond(table.column(name), bits)).size}
        if suspects:
            string = required("pyarrow", "tables").string()
            words = self._read(lines.text, dict.fromkeys(suspects, string), (), number=number)
            for name, rows in suspects.items():
                check_floats(name, words.column(name), table.column(name).to_numpy(), rows)
        yield from table.to_batches()

    def _by_rows_of_the_file(self, error: str, number: int) -> str:
        """An error in the block with this number, with the row of the file in place of the row of the block."""
        before = sum(self._rows_in(block()) for block in islice(self.lines.blocks(), number))
        return _ROW.sub(lambda match: f"Row #{int(match[1]) + before:,}", error)

    def _rows_in(self, lines: Lines) -> int:
        text = bytes(lines.text)
        return QuotedText(text, self.dialect.delimiter).count_of_ends(b"\n") if lines.quoted else text.count(b"\n")


def _first_row(text: bytes) -> bytes:
    """The text up to the first line end outside of quotes."""
    quotes = start = 0
    for end in _LINE_END.finditer(text):
        quotes += text.count(b'"', start, end.start())
        start = end.start()
        if quotes % 2 == 0:
            return text[:start]
    return text


def _converting(types: dict[str, Any], nulls: Sequence[str]) -> Any:
    """How the columns that `types` names are converted, or all columns if it names no column. A type of None is
    inferred."""
    return required("pyarrow.csv", "tables").ConvertOptions(
        include_columns=list(types),
        column_types={name: kind for name, kind in types.items() if kind is not None},
        null_values=list(nulls),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
