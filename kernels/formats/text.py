"""Columns of CSV and TSV files, which may be compressed by gzip or zstd.

Blocks of rows (`text_blocks.py`) are parsed apart, each by one thread. What a column holds is told by its first block
(`text_types.py`), or by the request; a later value of another kind is an error and never changes the dtype.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.frames import Frame, filtered, with_faults
from warpfold.kernels.formats.json_lines import JsonLines
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.formats.plain_text import PlainColumns
from warpfold.kernels.formats.row_filter import Condition, columns_of, compared_with_words
from warpfold.kernels.formats.signature import Format, compressed_format
from warpfold.kernels.formats.tables import ColumnWanted, Reading
from warpfold.kernels.formats.text_blocks import Block, Lines, stored_stream
from warpfold.kernels.formats.text_file import TextFile
from warpfold.kernels.formats.text_rows import TextRows
from warpfold.kernels.formats.text_types import TextColumns
from warpfold.kernels.machine.extras import required
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.sources.sections import in_turn
from warpfold.kernels.sources.sequential import Section, SequentialSource, Tally


def open_text(file: BinaryIO, packed: Format | None, wanted: ColumnWanted) -> SequentialSource:
    """The elements of a column of text whose first line names the columns. Raises InvalidInput."""
    pyarrow = required("pyarrow", "tables")
    if wanted.text is None:
        raise InvalidInput("is in none of the formats that can be read")
    with damaged("cannot be read as a table of text", pyarrow.ArrowException, OSError, ValueError):
        text = rows_of(file, packed, wanted.text)
        name = chosen_name(wanted.column, text.names, "a column", "column")
        needed = {name} | (set() if wanted.rows is None else columns_of(wanted.rows))
        inferred = text.types([column for column in text.names if column in needed])
        words = compared_with_words(wanted.rows) - {name} if text.compares_words else set[str]()
        types = {column: inferred.of_filter(column, words) for column in inferred.schema.names}
        if (not wanted.dtype or name in inferred.doubtful) and (why := text.why_refused(inferred, name)) is not None:
            raise InvalidInput(why, "decimal" if name in inferred.doubtful else "column")
        types[name] = inferred.of_values(name, wanted.dtype)
        schema = pyarrow.schema([(column, types.get(column, pyarrow.null())) for column in text.names])
        reading = Reading.of(schema, wanted)
    hint = "" if wanted.dtype else "; the first block told the dtype, and `dtype` names another"
    return _source(text, TextColumns(types), hint, text.lines.size // 8, reading)


def _source(text: TextRows, columns: TextColumns, hint: str, likely: int, reading: Reading) -> SequentialSource:
    pyarrow, tally = required("pyarrow", "tables"), Tally(dialects=[*text.dialects])
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


def rows_of(file: BinaryIO, packed: Format | None, options: TextOptions) -> TextRows:
    """The rows of a file of text, which may be compressed: cells or JSON lines, as its beginning tells. Raises the
    errors that pyarrow raises for the text, and InvalidInput."""
    if packed is Format.JSON_LINES:
        return JsonLines(file, None, options)
    if packed is not None and compressed_format(stored_stream(file, packed)) is Format.JSON_LINES:
        return JsonLines(file, packed, options)
    options.check_no_sheet()
    return TextFile(file, packed, options)


def first_block(file: BinaryIO, packed: Format | None, options: TextOptions) -> Any:
    """The columns of text as their first block tells their types: a schema of pyarrow."""
    return rows_of(file, packed, options).types().schema


def open_text_frame(file: BinaryIO, packed: Format | None, rows: Condition | None, options: TextOptions) -> Frame:
    """The columns of a table of text, of the rows that fulfil a condition. Raises InvalidInput."""
    pyarrow = required("pyarrow", "tables")
    with damaged("cannot be read as a table of text", pyarrow.ArrowException, OSError, ValueError):
        text = rows_of(file, packed, options)
        inferred = text.types()
    words = compared_with_words(rows) if text.compares_words else set[str]()
    types = {name: inferred.of_filter(name, words) for name in set(text.names) if text.names.count(name) == 1}
    frame = _of_text(text, types, rows, Tally(dialects=[*text.dialects]))
    return replace(frame, why_refused=partial(text.why_refused, inferred))


def _of_text(
    text: TextRows, types: Mapping[str, Any], rows: Condition | None, tally: Tally, keys: frozenset[str] = frozenset()
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
