"""Rows for groups: tables of which several columns are read at once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.arrow_messages import Messages
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.hyperslab import check_elements
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.formats.row_filter import Condition, columns_of, expression
from warpfold.kernels.formats.signature import Format, readable_format
from warpfold.kernels.formats.tables import (
    batches_of_stream,
    dtype_of_column,
    integers_of,
    meaning_of_column,
    random_access,
    sound,
)
from warpfold.kernels.lowering.long_integers import Beyond
from warpfold.kernels.machine.extras import required
from warpfold.kernels.parts.keyed import PART_ROWS, Cells, KeyedPart, KeyedRows, KeyedSource
from warpfold.kernels.sources.sequential import Tally

_AHEAD_BYTES = 1 << 27
"""The bytes of record batches that are decoded ahead."""


@dataclass(frozen=True)
class Frame:
    """Columns of a table with a schema of pyarrow. `make` begins to read the named columns, in record batches and in
    order; `likely` is an upper bound of the number of rows. For a table in row groups, `groups` says how many rows each
    group has before the filter, and `make_groups` begins to read the groups start … stop − 1. Of text, `make_keyed`
    gives the same table with the types by which the named columns are keys, and `why_refused` says why a word
    keeps a column from being reduced."""

    schema: Any
    make: Callable[[Sequence[str]], Iterator[Any]]
    likely: int
    tally: Tally = field(default_factory=Tally)
    groups: tuple[int, ...] = ()
    make_groups: Callable[[Sequence[str], int, int], Iterator[Any]] | None = None
    make_keyed: "Callable[[Sequence[str]], Frame] | None" = None
    why_refused: Callable[[str], str | None] = lambda _: None

    def between(self, start: int, stop: int) -> Self:
        """The rows of row groups start … stop − 1."""

        def make(columns: Sequence[str]) -> Iterator[Any]:
            assert self.make_groups is not None, "asked only of a table in row groups"
            return self.make_groups(columns, start, stop)  # `make` holds this frame, so its file stays open

        return replace(self, make=make, likely=sum(self.groups[start:stop]), groups=(), make_groups=None)

    def keyed(self, names: Sequence[str]) -> "Frame":
        """The same table, whose named columns are keys: words of text have other types then."""
        if self.make_keyed is None:
            return self
        table = self.make_keyed(names)
        return replace(table, make=partial(self._read_from, table))  # it holds this frame, so its file stays open

    def _read_from(self, table: "Frame", columns: Sequence[str]) -> Iterator[Any]:
        return table.make(columns)

    def within(self, context: Callable[[], AbstractContextManager[object]]) -> Self:
        """The same columns, read within the context that `within` makes. The context may give errors other words."""

        def around(begin: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
            def make(*asked: Any) -> Iterator[Any]:
                with context():
                    yield from begin(*asked)

            return make

        def keyed(begin: Callable[[Sequence[str]], Frame], names: Sequence[str]) -> Frame:
            with context():
                return begin(names).within(context)

        make_groups = None if self.make_groups is None else around(self.make_groups)
        make_keyed = None if self.make_keyed is None else partial(keyed, self.make_keyed)
        return replace(self, make=around(self.make), make_groups=make_groups, make_keyed=make_keyed)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column of a table, its name in the result, and the field of the request that names it."""

    column: str
    name: str
    field: str


def open_frame(file: BinaryIO, rows: Condition | None, text: TextOptions) -> Frame:
    """The columns of the table in `file`, which must stay open while they are read, of the rows that fulfil a
    condition. Raises InvalidInput, which names the field "filter" where the filter is at fault, and Unavailable."""
    pyarrow = required("pyarrow", "tables")
    kind = readable_format(file)
    if kind in (None, Format.GZIP, Format.ZSTD, Format.JSON_LINES):
        from warpfold.kernels.formats.text import open_text_frame

        return open_text_frame(file, kind, rows, text)
    if kind is Format.XLSX:
        return _sheet(file, rows, text)
    text.check_unused()
    with damaged("cannot be read as a table", pyarrow.ArrowException, OSError, ValueError):
        if begin := {Format.PARQUET: _parquet, Format.ARROW_FILE: _arrow_file, Format.ARROW_STREAM: _stream}.get(kind):
            frame = begin(file, rows)
            list(frame.schema.names)  # an error here where a name is not UTF-8
            return frame
    assert kind is not None
    raise InvalidInput(f"is no table but {kind.value}: groups are made of the columns of a table")


def _sheet(file: BinaryIO, rows: Condition | None, text: TextOptions) -> Frame:
    from warpfold.kernels.formats.xlsx_columns import Sheet

    sheet = Sheet.of(file, text)
    filtered(rows, sheet.schema)
    tally = Tally(dialects=[sheet.dialect])
    batches = with_faults(partial(sheet.batches, rows=rows))
    return Frame(sheet.schema, batches, sheet.rows, tally, why_refused=sheet.why_refused)


def filtered(rows: Condition | None, schema: Any) -> Any:
    return None if rows is None else expression(rows, schema)


def _parquet(file: BinaryIO, rows: Condition | None) -> Frame:
    from warpfold.kernels.formats.parquet_footer import Footer

    footer = Footer.of(file).keeping_times()
    condition = filtered(rows, footer.schema)
    needed = set() if rows is None else columns_of(rows)
    held = footer.groups(rows)
    metadata = footer.metadata

    def batches(columns: Sequence[str], start: int = 0, stop: int = metadata.num_row_groups) -> Iterator[Any]:
        read = [name for name in footer.schema.names if name in {*columns, *needed}]
        footer.check(read)
        groups = [number for number in held if start <= number < stop]
        rows_at_a_time = footer.rows_at_a_time(groups, read, PART_ROWS)
        scan = (
            footer.fragment()
            .subset(row_group_ids=groups)
            .scanner(schema=footer.schema, columns=read, batch_size=rows_at_a_time, batch_readahead=4)
        )
        return (_kept(batch, condition, columns) for batch in scan.to_batches())

    return Frame(
        footer.schema,
        with_faults(batches),
        metadata.num_rows,
        groups=tuple(int(metadata.row_group(number).num_rows) for number in range(metadata.num_row_groups)),
        make_groups=with_faults(batches),
    )


def _arrow_file(file: BinaryIO, rows: Condition | None) -> Frame:
    file_format = required("pyarrow.dataset", "tables").IpcFileFormat()
    fragment = file_format.make_fragment(random_access(file))
    schema = fragment.physical_schema
    condition = filtered(rows, schema)
    needed = set() if rows is None else columns_of(rows)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        read = [name for name in schema.names if name in {*columns, *needed}]
        largest = Messages(file, schema, read).check_file()
        own = file_format.make_fragment(random_access(file))
        ahead = min(4, _AHEAD_BYTES // max(1, largest))
        scan = own.scanner(schema=schema, columns=read, batch_size=PART_ROWS, batch_readahead=ahead)
        return (_kept(sound(batch), condition, columns) for batch in scan.to_batches())

    count = fragment.count_rows()
    check_elements(count)
    return Frame(schema, with_faults(batches), count)


def _stream(file: BinaryIO, rows: Condition | None) -> Frame:
    ipc = required("pyarrow.ipc", "tables")
    schema = ipc.open_stream(random_access(file)).schema
    condition = filtered(rows, schema)
    needed = set() if rows is None else columns_of(rows)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        read = [name for name in schema.names if name in {*columns, *needed}]
        for batch in batches_of_stream(file, read):
            for at in range(0, batch.num_rows, PART_ROWS):
                yield _kept(batch.slice(at, PART_ROWS), condition, columns)

    return Frame(schema, with_faults(batches), 0)


def _kept(batch: Any, condition: Any, columns: Sequence[str]) -> Any:
    """The columns of a record batch, of the rows that fulfil a condition."""
    return (batch if condition is None else batch.filter(condition)).select(list(columns))


def with_faults(batches: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """The same batches. An error that pyarrow raises while it reads them becomes InvalidInput."""

    def batches_or_faults(columns: Sequence[str], *groups: int) -> Iterator[Any]:
        pyarrow = required("pyarrow", "tables")
        with damaged("cannot be read to its end", pyarrow.ArrowException, OSError, ValueError):
            yield from batches(columns, *groups)

    return batches_or_faults


def frame_of(table: Any) -> Frame:
    """The columns of a table of pyarrow that is in memory."""

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        return iter(table.select(list(columns)).to_batches(PART_ROWS))

    return Frame(table.schema, batches, table.num_rows)


def keyed_frame(
    frame: Frame, keys: Sequence[Wanted], columns: Sequence[Wanted], *, refuse_nulls: bool, meant: bool = False
) -> KeyedSource:
    """Rows of a table by some of its columns. With `meant` the columns may be decimals, instants and durations, of
    which the integers are read: the caller that reduces the rows has to heed their meanings. Raises InvalidInput with
    the field that names a column which does not exist, or which holds neither keys nor numbers."""
    for wanted in (*keys, *columns):
        chosen_name(wanted.column, frame.schema.names, "a column", wanted.field)
        if len(frame.schema.get_all_field_indices(wanted.column)) > 1:
            raise InvalidInput(f"holds more than one column {wanted.column!r}", wanted.field)
        if wanted in columns and (why := frame.why_refused(wanted.column)) is not None:
            raise InvalidInput(why, wanted.field)
    frame = frame.keyed([wanted.column for wanted in keys])
    schema = frame.schema
    for wanted in keys:
        check_key(wanted.column, schema.field(wanted.column).type, wanted.field)
    meanings = tuple(meaning_of_column(schema.field(wanted.column).type) if meant else None for wanted in columns)
    dtypes = tuple(
        _dtype(wanted, schema) if meaning is None else DTYPES["int64"]
        for wanted, meaning in zip(columns, meanings, strict=True)
    )
    read = tuple(dict.fromkeys(wanted.column for wanted in (*keys, *columns)))
    tallies = tuple(Tally() for _ in columns) if any(meanings) else ()

    def parts() -> Iterator[KeyedPart]:
        start = 0
        for batch in frame.make(read):
            for at in range(0, batch.num_rows, PART_ROWS):
                part = batch.slice(at, PART_ROWS)
                stop = start + part.num_rows
                rows = partial(_rows_of, part, start, keys, columns, tallies=tallies, refuse_nulls=refuse_nulls)
                yield KeyedPart(start, stop, rows)
                start = stop

    return KeyedSource(
        key_names=tuple(wanted.name for wanted in keys),
        key_types=tuple(schema.field(wanted.column).type for wanted in keys),
        column_names=tuple(wanted.column for wanted in columns),
        dtypes=dtypes,
        meanings=meanings if any(meanings) else (),
        tallies=tallies,
        begin=parts,
        likely=frame.likely,
        decodes=True,
        remotes=lambda: frame.tally.objects,
        counts=lambda: frame.tally.files,
        dialects=lambda: tuple(dict.fromkeys(frame.tally.dialects)),
    )


def _dtype(wanted: Wanted, schema: Any) -> DType:
    kind = schema.field(wanted.column).type
    if meaning_of_column(kind) is not None:
        raise InvalidInput(
            f"holds column {wanted.column!r} as {kind}, which is not taken here: cast it to float64 or int64 first",
            wanted.field,
        )
    try:
        return dtype_of_column(wanted.column, kind)
    except InvalidInput as error:
        raise InvalidInput(str(error), wanted.field) from None


def check_key(name: str, kind: Any, where: str) -> None:
    """Raise InvalidInput naming the field `where` unless values of pyarrow's type `kind` are keys."""
    types = required("pyarrow", "tables").types
    inner = kind.value_type if types.is_dictionary(kind) else kind
    tests = [types.is_integer, types.is_boolean, types.is_string, types.is_large_string, types.is_string_view]
    if inner is kind:
        tests += [types.is_date, types.is_timestamp, types.is_float32, types.is_float64]
    if not any(test(inner) for test in tests):
        raise InvalidInput(
            f"holds {name!r} as {str(kind)[:200]}: keys are integers, truth values, strings, or dictionaries of these, "
            "and dates, timestamps, float32 and float64",
            where,
        )


def _rows_of(
    batch: Any,
    start: int,
    keys: Sequence[Wanted],
    columns: Sequence[Wanted],
    *,
    tallies: Sequence[Tally],
    refuse_nulls: bool,
) -> KeyedRows:
    beyond = [tally.beyond for tally in tallies] or [None] * len(columns)
    cells = tuple(
        _cells(batch.column(wanted.column), start, wanted, room, refuse_nulls=refuse_nulls)
        for wanted, room in zip(columns, beyond, strict=True)
    )
    return KeyedRows(start, tuple(batch.column(wanted.column) for wanted in keys), cells)


def _cells(column: Any, start: int, wanted: Wanted, beyond: Beyond | None, *, refuse_nulls: bool) -> Cells:
    types = required("pyarrow", "tables").types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()  # decoding makes a null in the dictionary a null of the column
    stands = meaning_of_column(column.type) is not None
    if not column.null_count:
        return Cells(
            _integers(column, wanted, beyond) if stands else np.ascontiguousarray(column.to_numpy(zero_copy_only=False))
        )
    if refuse_nulls:
        row = start + column.is_null().index(True).as_py()
        raise InvalidInput(f"row {row:,} of {wanted.column!r} is null, and null_policy is raise", wanted.field)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if stands:
        return Cells(_integers(column, wanted, beyond), missing)
    if not types.is_floating(column.type):
        column = column.fill_null(False if types.is_boolean(column.type) else 0)
    return Cells(np.ascontiguousarray(column.to_numpy(zero_copy_only=False)), missing)


def _integers(column: Any, wanted: Wanted, beyond: Beyond | None) -> NDArray[np.int64]:
    try:
        return integers_of(wanted.column, column, beyond)
    except InvalidInput as error:
        raise InvalidInput(str(error), wanted.field) from None
