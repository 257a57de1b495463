"""A file of text: the names of its columns, the types that its beginning tells, and the columns of its blocks, read by
pyarrow, or by compiled code where the text is plain (`plain_text.py`)."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import Dialect, TextOptions
from warpfold.kernels.formats.plain_text import PlainColumns, TextLayout, plain_columns
from warpfold.kernels.formats.signature import Format
from warpfold.kernels.formats.text_blocks import Lines, TextLines, stored_stream
from warpfold.kernels.formats.text_quotes import QuotedText
from warpfold.kernels.formats.text_rows import TextRows
from warpfold.kernels.formats.text_sniffing import sniffed
from warpfold.kernels.formats.text_types import (
    PRECISION,
    TextColumns,
    TextTypes,
    beyond,
    check_floats,
    check_integers,
    has_hexadecimals,
    is_number,
    key_integers,
    plain_words,
    typed,
    ungrouped,
)
from warpfold.kernels.machine.extras import required

_INFERRED_BYTES = 1 << 18
"""The bytes that one thread parses at a time of the block that tells the dtypes."""

MOST_COLUMNS = 1 << 16
"""The most columns of a table of text: the reader takes some 6 KiB for each."""

_LINE_END = re.compile(rb"[\r\n]")
_WAYS_ON = {
    "UTF8": "`encoding` says what the text is in, such as latin-1 or cp1252",
    r"got [0-9]+: [#%!]": "`comment` says what begins a comment",
    "Expected 1 columns": "`delimiter` says what stands between cells",
}
"""What helps where pyarrow reads no table, by a word of its error."""

_ROW = re.compile(r"Row #(\d+)")


class TextFile(TextRows):
    """A file of text, to be read from its beginning as often as needed. `names` are those of its columns.

    Opening the file raises the errors that pyarrow raises for the text, and InvalidInput where a line is too long."""

    def __init__(self, file: BinaryIO, packed: Format | None, options: TextOptions) -> None:
        look = sniffed(partial(_beginning, file, packed), options)
        self.dialect = look.dialect
        super().__init__(TextLines(file, packed, self.dialect), [self.dialect])
        # In a table of a single column an empty line is a null. In a table of several columns it is not a row.
        self._lines_are_rows = False
        head = self.lines.head()
        columns = _first_row(bytes(head), self.dialect).count(self.dialect.delimiter.encode()) + 1
        if columns > MOST_COLUMNS:
            raise InvalidInput(f"has {columns:,} columns, and at most {MOST_COLUMNS:,} are read")
        self.names: Sequence[str] = self._names(head)
        self._lines_are_rows = len(self.names) == 1
        self._layout = TextLayout(self.names, self.dialect)
        self._doubtful = {self.names[at]: word for at, word in look.doubtful.items() if at < len(self.names)}

    def _names(self, head: memoryview) -> Sequence[str]:
        csv = required("pyarrow.csv", "tables")
        numbered = not self.dialect.header
        reading = csv.ReadOptions(use_threads=False, block_size=len(head) + 1, autogenerate_column_names=numbered)
        table = _read_csv(head, reading, self._parsing(head), self._converting({}, ()))
        try:
            names: Sequence[str] = table.column_names
        except UnicodeDecodeError:
            raise InvalidInput(
                "has names of columns that are not UTF-8: `encoding` says what they are in, such as latin-1 or cp1252",
                "encoding",
            ) from None
        return [f"column_{place}" for place in range(1, len(names) + 1)] if numbered else names

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
        names = {} if columns is None else dict.fromkeys(columns)
        table = self._read(text, names, self.dialect.nulls_of_numbers, part=None if at_once else _INFERRED_BYTES)
        return typed(table, self.dialect, self._doubtful, text, partial(self._words_in, text))

    def _words_in(self, text: memoryview, columns: Sequence[str]) -> Any:
        """Columns of the first block as words."""
        string, nulls = required("pyarrow", "tables").string(), self.dialect.nulls_of_numbers
        return self._read(text, dict.fromkeys(columns, string), nulls)

    def why_refused(self, types: TextTypes, name: str) -> str | None:
        """Why a column that has numbers is not reduced, where one of its words is the reason."""
        if name in self.dialect.words:
            return None
        return types.why_refused(name, lambda: self._words_in(self.lines.first_block(), [name]).column(name))

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
        headed = number == 0 and self.dialect.header
        return self._table(text, types, nulls, names=None if headed else self.names, part=part)

    def _table(
        self,
        text: memoryview,
        types: dict[str, Any],
        nulls: Sequence[str],
        *,
        names: Sequence[str] | None,
        part: int | None = None,
        lines_are_rows: bool | None = None,
    ) -> Any:
        """What pyarrow reads. Numbers with groups of digits are read as words, and then without the groups."""
        pyarrow, csv = required("pyarrow", "tables"), required("pyarrow.csv", "tables")
        part = part or len(text) + 1
        reading = csv.ReadOptions(use_threads=part < len(text), block_size=part, column_names=names)
        parsing = self._parsing(text, lines_are_rows=lines_are_rows)
        grouped = {name for name, kind in types.items() if self.dialect.thousands and is_number(kind)}
        asked = {name: pyarrow.string() if name in grouped else kind for name, kind in types.items()}
        table = _read_csv(text, reading, parsing, self._converting(asked, nulls))
        if not self.dialect.thousands:
            return table
        columns = []
        for name, column in zip(table.column_names, table.columns, strict=True):
            kind = types.get(name)
            if str(column.type) == "string" and (kind is None or name in grouped):
                lines = ungrouped(column, self.dialect, kind)
                if lines is not None:
                    column = self._plain_numbers(lines, kind)  # noqa: PLW2901
            columns.append(column)
        return pyarrow.Table.from_arrays(columns, names=table.column_names)

    def _plain_numbers(self, lines: bytes, kind: Any) -> Any:
        """Numbers, a line each and each in double quotes, as a column; an empty line is a null."""
        csv = required("pyarrow.csv", "tables")
        reading = csv.ReadOptions(use_threads=False, block_size=len(lines) + 1, column_names=["word"])
        parsing = csv.ParseOptions(ignore_empty_lines=False)
        converting = self._converting({"word": kind}, ("",))
        return _read_csv(lines, reading, parsing, converting).column("word")

    def _parsing(self, text: memoryview | bytes, *, lines_are_rows: bool | None = None) -> Any:
        quote = self.dialect.quote
        lines_are_rows = self._lines_are_rows if lines_are_rows is None else lines_are_rows
        return required("pyarrow.csv", "tables").ParseOptions(
            delimiter=self.dialect.delimiter,
            quote_char=quote or False,
            ignore_empty_lines=not lines_are_rows,
            newlines_in_values=bool(quote) and quote.encode() in bytes(text),
        )

    def _converting(self, types: dict[str, Any], nulls: Sequence[str]) -> Any:
        """How the columns that `types` names are converted, or all columns if it names no column. A type of None is
        inferred."""
        return required("pyarrow.csv", "tables").ConvertOptions(
            include_columns=list(types),
            column_types={name: kind for name, kind in types.items() if kind is not None},
            null_values=list(nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            decimal_point=self.dialect.decimal,
        )

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
        pyarrow = required("pyarrow", "tables")
        ((types, nulls),) = columns.only(name).by_nulls(self.dialect)
        kind = types[name]
        if pyarrow.types.is_integer(kind) and has_hexadecimals(words):
            return None  # reading the whole block gives the error
        try:
            table = self._table(memoryview(words), {"word": kind}, nulls, names=["word"], lines_are_rows=True)
        except pyarrow.ArrowInvalid:
            return None
        return columns.as_keys(name, table.column("word")).combine_chunks()

    def plain(self, number: int, lines: Lines, columns: TextColumns) -> PlainColumns | None:
        """The columns in the block with this number, where its text is plain and compiled functions are to read it."""
        if not lines.text or self.lines.at_once:
            return None
        return plain_columns(lines, self._layout, columns, headed=number == 0 and self.dialect.header)

    def exact(self, number: int, lines: Lines, columns: TextColumns, plain: PlainColumns | None) -> Iterator[Any]:
        """Record batches of the columns in the block with this number; `plain` has its words where it is plain. Raises
        InvalidInput where a float would round an integer or is too small for a number, and the errors that pyarrow
        raises for the text. Only a float above the integers that its format holds exactly, infinity among them, can be
        such a number. So the text is looked at again only where a block has such a float."""
        if not lines.text:
            return
        headed = number == 0 and self.dialect.header
        if (
            not headed
            and not self._lines_are_rows
            and lines.text[0] in b"\r\n"
            and not bytes(lines.text).strip(b"\r\n")
        ):
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
                check_floats(name, plain_words(words.column(name), self.dialect), table.column(name).to_numpy(), rows)
        yield from table.to_batches()

    def _by_rows_of_the_file(self, error: str, number: int) -> str:
        """An error in the block with this number, with the row of the file in place of the row of the block."""
        before = self.rows_before(number)
        return _ROW.sub(lambda match: f"Row #{int(match[1]) + before:,}", error)

    def rows_in(self, lines: Lines) -> int:
        text = bytes(lines.text)
        return QuotedText(text, self.dialect).count_of_ends(b"\n") if lines.quoted else text.count(b"\n")


def _beginning(file: BinaryIO, packed: Format | None, count: int) -> bytes:
    """The first bytes of a text."""
    first: bytes = stored_stream(file, packed).read(count)
    return first


def _first_row(text: bytes, dialect: Dialect) -> bytes:
    """The text up to the first line end outside of quotes."""
    quotes = start = 0
    for end in _LINE_END.finditer(text):
        quotes += text.count(dialect.quote.encode(), start, end.start()) if dialect.quote else 0
        start = end.start()
        if quotes % 2 == 0:
            return text[:start]
    return text


def _read_csv(text: memoryview | bytes, *options: Any) -> Any:
    """What pyarrow reads of a text; its error says what may help where the text is written in another way."""
    pyarrow, csv = required("pyarrow", "tables"), required("pyarrow.csv", "tables")
    try:
        return csv.read_csv(pyarrow.BufferReader(text), *options)
    except pyarrow.ArrowInvalid as error:
        why = str(error).splitlines()[0]
        for sign, way_on in _WAYS_ON.items():
            if re.search(sign, why):
                raise pyarrow.ArrowInvalid(f"{why[:200]}; {way_on}") from None
        raise
