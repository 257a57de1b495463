"""Columns of tables: Parquet, Arrow (IPC files, Feather version 2, and streams), CSV and TSV, and Excel's .xlsx.

The named column and the columns of the row filter are read, batch after batch. A column that lies in an Arrow file as
it is in memory is read at its place.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.arrow_messages import Messages
from warpfold.kernels.formats.dialect import Dialect, TextOptions
from warpfold.kernels.formats.hyperslab import check_elements
from warpfold.kernels.formats.naming import chosen_name, damaged
from warpfold.kernels.formats.row_filter import Condition, columns_of, expression
from warpfold.kernels.formats.signature import Format, readable_format
from warpfold.kernels.lowering.decimals import MOST_SCALE, Decimals
from warpfold.kernels.lowering.long_integers import Beyond
from warpfold.kernels.lowering.meaning import Meaning
from warpfold.kernels.lowering.times import Durations, Instants
from warpfold.kernels.machine.extras import required
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.places.file import again, is_remote
from warpfold.kernels.source import FileBytes, FileSource
from warpfold.kernels.sources.chained import ChainedSource, Link
from warpfold.kernels.sources.sections import NullRefused
from warpfold.kernels.sources.sequential import Elements, SequentialSource, Tally

_MOST_READ_BYTES = 1 << 28
"""The largest Arrow file whose batches are read into memory."""

_PART_ROWS = 1 << 20
"""Rows of a record batch that are taken at a time."""

_DTYPES = {"halffloat": "float16", "float": "float32", "double": "float64"}
"""Names of pyarrow's types that are not those of ours."""


@dataclass(frozen=True, slots=True)
class ColumnWanted:
    """What to read of a table. `dtype` and `text` are for text. `dtype` is the dtype that the column is read as,
    None to infer it; `text` is None for a file that is not text."""

    column: str | None = None
    rows: Condition | None = None
    nulls: NullPolicy = NullPolicy.OMIT
    dtype: str | None = None
    text: TextOptions | None = None


def open_column(file: BinaryIO, wanted: ColumnWanted) -> Elements:
    """The elements of a column. `file` must stay open while they are read in order.

    Raises InvalidInput, which names the field "column", "filter" or "dtype" where that field is at fault, and
    Unavailable where pyarrow is not installed.
    """
    pyarrow = required("pyarrow", "tables")
    kind = readable_format(file)
    errors = (pyarrow.ArrowException, OSError, ValueError)
    if kind in (None, Format.GZIP, Format.ZSTD, Format.JSON_LINES):
        from warpfold.kernels.formats.text import open_text

        return open_text(file, kind, wanted)
    if wanted.dtype is not None:
        raise InvalidInput("is not text: its columns have dtypes already, so leave `dtype` out", "dtype")
    if kind is Format.XLSX:
        return _sheet(file, wanted)
    if wanted.text is not None:
        wanted.text.check_unused()
    with damaged("cannot be read as a table", *errors):
        if kind is Format.PARQUET:
            from warpfold.kernels.formats.parquet import open_parquet

            return open_parquet(file, wanted)
        if kind is Format.ARROW_FILE:
            return _arrow_file(file, wanted)
        if kind is Format.ARROW_STREAM:
            return _arrow_stream(file, wanted)
    assert kind is not None
    raise InvalidInput(f"is not a table but {kind.value}: a source of type array reads an array of it")


@dataclass(frozen=True, slots=True)
class Reading:
    """A column as it is found in a table of `schema`: its name, its dtype, which columns to read for it, and the
    expression that rows must fulfil. With `truths`, the elements are read as truth values, which say whether each
    element is a null."""

    column: str
    dtype: DType
    columns: tuple[str, ...]
    rows: Any
    nulls: NullPolicy
    meaning: Meaning | None = None
    truths: bool = False

    @classmethod
    def of(cls, schema: Any, wanted: ColumnWanted) -> "Reading":
        """Raises InvalidInput."""
        name = chosen_name(wanted.column, schema.names, "a column", "column")
        needed = {name} | (set() if wanted.rows is None else columns_of(wanted.rows))
        rows = None if wanted.rows is None else expression(wanted.rows, schema)
        for column in needed:
            if len(schema.get_all_field_indices(column)) > 1:
                raise InvalidInput(f"holds more than one column {column!r}", "column" if column == name else "filter")
        kind, read = schema.field(name).type, tuple(column for column in schema.names if column in needed)
        meaning = meaning_of_column(kind)
        dtype = dtype_of_column(name, kind) if meaning is None else DTYPES["int64"]
        return cls(name, dtype, read, rows, wanted.nulls, meaning)

    @property
    def takes_all_numbers(self) -> bool:
        """Whether the elements are the numbers of the column itself, one of each row."""
        return self.rows is None and self.meaning is None and not self.truths

    @property
    def keeps_nulls(self) -> bool:
        """Whether nulls keep their places, so that a part has as many elements as rows."""
        return self.nulls is NullPolicy.PROPAGATE

    def of_nulls(self) -> "Reading":
        """The same column, read as truth values that say whether each element is a null."""
        return replace(self, dtype=DTYPES["bool"], meaning=None, truths=True)

    def source(
        self, batches: Callable[[], Iterator[Any]], likely: int, dialect: Dialect | None = None
    ) -> SequentialSource:
        """The elements of the record batches with the columns, which the function `batches` begins to read, of a file
        that is written in a `dialect`."""
        tally = Tally(dialects=[] if dialect is None else [dialect])
        return SequentialSource(
            self.dtype,
            lambda: self.elements(batches(), 0, tally),
            None,
            likely,
            tally,
            meaning=self.meaning,
            nulls=self.with_nulls(lambda reading: reading.source(batches, likely)),
        )

    def with_nulls(self, opened: "Callable[[Reading], SequentialSource]") -> Callable[[], SequentialSource] | None:
        """The source of truth values that say whether each element is a null, which `opened` opens; None where nulls
        are not kept."""
        return partial(opened, self.of_nulls()) if self.keeps_nulls and not self.truths else None

    def elements(self, batches: Iterator[Any], start: int, tally: Tally) -> Iterator[NDArray[Any]]:
        """The column's values in record batches. The first row that is reduced has the index `start`; `tally` counts
        the nulls. Raises NullRefused where a null is refused, and InvalidInput where the file is damaged."""
        pyarrow = required("pyarrow", "tables")
        with damaged("is damaged", pyarrow.ArrowException, OSError, ValueError):
            for batch in batches:
                for at in range(0, batch.num_rows, _PART_ROWS):
                    part = batch.slice(at, _PART_ROWS)
                    values = self._values(part if self.rows is None else part.filter(self.rows), start, tally)
                    start += values.size
                    yield values

    def _values(self, batch: Any, start: int, tally: Tally) -> NDArray[Any]:
        pyarrow = required("pyarrow", "tables")
        column = batch.column(self.column)
        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()  # decoding makes a null in the dictionary a null of the column
        if self.truths:
            truths: NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
            return truths
        if column.null_count:
            if self.nulls is NullPolicy.RAISE:
                raise NullRefused(self.column, start + column.is_null().index(True).as_py())
            tally.add(nulls=column.null_count)
            if not self.keeps_nulls:
                column = column.drop_null()
            elif self.meaning is None:
                column = column.fill_null(pyarrow.scalar(0, pyarrow.int64()).cast(column.type))
        if self.meaning is not None:
            return integers_of(self.column, column, tally.beyond)
        elements: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return elements


def dtype_of_column(name: str, kind: Any) -> DType:
    """The dtype of a column of pyarrow's type `kind`. Raises InvalidInput where its values are not numbers that can be
    reduced as they are."""
    pyarrow = required("pyarrow", "tables")
    inner = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    dtype = DTYPES.get(_DTYPES.get(str(inner), str(inner)))
    meaning = meaning_of_column(kind)
    if meaning is not None:
        raise InvalidInput(
            f"holds column {name!r} as {str(kind)[:200]}, and only plain numbers are reduced here: cast the column to "
            f"int64 or float64 first, or reduce it by warpfold.Client, whose value is a {meaning.kind}, too",
            "column",
        )
    if dtype is None:
        raise InvalidInput(
            f"holds column {name!r} as {str(kind)[:200]}, which is not reduced here: integers, floats and truth values "
            f"are, and in files also decimals of scales up to {MOST_SCALE:,}, timestamps, dates and durations",
            "column",
        )
    return dtype


def meaning_of_column(kind: Any) -> Meaning | None:
    """The meaning of the integers of a column of pyarrow's type `kind`; None for a type whose values are numbers, or
    cannot be reduced."""
    types = required("pyarrow", "tables").types
    inner = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_decimal(inner):
        return Decimals(int(inner.scale)) if abs(inner.scale) <= MOST_SCALE else None
    if types.is_timestamp(inner):
        return Instants(inner.unit, inner.tz)
    if types.is_date(inner):
        return Instants("D" if types.is_date32(inner) else "ms")
    return Durations(inner.unit) if types.is_duration(inner) else None


def integers_of(name: str, column: Any, beyond: Beyond | None = None) -> NDArray[np.int64]:
    """The integers that decimals, times or durations are stored as; that of a null is 0. Raises InvalidInput where
    int64 does not hold one, unless `beyond` takes what int64 leaves out."""
    pyarrow = required("pyarrow", "tables")
    if not pyarrow.types.is_decimal(column.type):
        stored = pyarrow.int32() if pyarrow.types.is_date32(column.type) else pyarrow.int64()
        return np.asarray(column.view(stored).fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    width = int(column.type.bit_width) // 8
    if width < 8:
        short = np.frombuffer(column.buffers()[1], np.int32, len(column), column.offset * width)
        words = short.astype(np.int64).reshape(-1, 1)
    else:
        words = np.frombuffer(column.buffers()[1], np.int64, len(column) * (width // 8), column.offset * width)
        words = words.reshape(-1, width // 8)
    if column.null_count:  # pyarrow fills nulls of some decimals with another scale
        words = np.where(column.is_null().to_numpy(zero_copy_only=False)[:, None], 0, words)
    low, *high = words.T
    outside = np.zeros(len(words), np.bool_)
    for word in high:
        outside |= word != low >> 63  # which frees the signs at once: two long arrays at a time cost page faults
    if beyond is not None and (beyond.of_all or outside.any()):
        return beyond.elements(words, outside)
    if outside.any():
        raise InvalidInput(f"holds a decimal in column {name!r} whose digits make an integer beyond int64", "column")
    return np.ascontiguousarray(low)


def sound(batch: Any) -> Any:
    """A record batch of Arrow as it was read. Raises the error of pyarrow where its buffers are too short, or where
    offsets and indices in it lead outside of them: pyarrow hands out what lies in a file, and reads memory there."""
    types = required("pyarrow", "tables").types
    batch.validate()
    for column in batch.columns:
        if not (types.is_primitive(column.type) or types.is_decimal(column.type)):
            column.validate(full=True)
    return batch


def random_access(file: BinaryIO) -> Any:
    """`file` as pyarrow reads it. It is opened by its descriptor, because its path could lead to another file by
    now."""
    if is_remote(file):
        return required("pyarrow", "tables").PythonFile(again(file), mode="r")
    return required("pyarrow", "tables").OSFile(f"/dev/fd/{file.fileno()}")


def _sheet(file: BinaryIO, wanted: ColumnWanted) -> Elements:
    from warpfold.kernels.formats.xlsx_columns import Sheet

    sheet = Sheet.of(file, wanted.text or TextOptions())
    name = chosen_name(wanted.column, sheet.schema.names, "a column", "column")
    if (why := sheet.why_refused(name)) is not None:
        raise InvalidInput(why, "column")
    reading = Reading.of(sheet.schema, wanted)
    return reading.source(lambda: sheet.batches(reading.columns), sheet.rows, sheet.dialect)


def _arrow_file(file: BinaryIO, wanted: ColumnWanted) -> Elements:
    dataset, ipc = required("pyarrow.dataset", "tables"), required("pyarrow.ipc", "tables")
    schema = ipc.open_file(random_access(file)).schema
    reading = Reading.of(schema, wanted)
    rows = dataset.IpcFileFormat().make_fragment(random_access(file)).count_rows()
    check_elements(rows)
    widths = (_bit_width(schema.field(number).type) for number in range(len(schema)))
    uncompressed = file.seek(0, 2) >= rows * sum(widths) // 8
    if (
        reading.rows is None
        and uncompressed
        and not is_remote(file)
        and (stored := _as_stored(file, reading)) is not None
    ):
        return stored

    Messages(file, schema, reading.columns).check_file()

    def batches() -> Iterator[Any]:
        reader = projected(ipc.open_file, file, reading.columns)
        for number in range(reader.num_record_batches):
            yield sound(reader.get_batch(number))

    return reading.source(batches, rows)


def _bit_width(kind: Any) -> int:
    """The bits of an element, 0 where elements differ in their bits."""
    try:
        return int(kind.bit_width)
    except ValueError:
        return 0


def projected(open_ipc: Any, file: BinaryIO, columns: Collection[str]) -> Any:
    """What reads the record batches of an Arrow file or stream, and of these the columns alone. A large file is mapped,
    because its batches may be as large."""
    pyarrow, ipc = required("pyarrow", "tables"), required("pyarrow.ipc", "tables")
    mapped = not is_remote(file) and file.seek(0, 2) > _MOST_READ_BYTES
    source = pyarrow.memory_map(f"/dev/fd/{file.fileno()}") if mapped else random_access(file)
    names = open_ipc(source).schema
    source.seek(0)
    return open_ipc(
        source, options=ipc.IpcReadOptions(included_fields=[names.get_field_index(each) for each in columns])
    )


def _as_stored(file: BinaryIO, reading: Reading) -> ChainedSource | None:
    """The column at its place in the file, if all of it lies there as it is in memory: not compressed, without nulls,
    and no truth values, which take a bit each. The file is mapped, and only the head of each batch is read: the arrays
    that pyarrow makes tell their addresses in the map.
    """
    pyarrow, ipc = required("pyarrow", "tables"), required("pyarrow.ipc", "tables")
    if reading.dtype is DTYPES["bool"] or reading.meaning is not None:
        return None
    mapped = pyarrow.memory_map(f"/dev/fd/{file.fileno()}")
    size = mapped.size()
    begin = mapped.read_buffer(size).address
    mapped.seek(0)
    reader = ipc.open_file(mapped)
    shared, links = FileBytes(file.fileno(), 0), []
    for number in range(reader.num_record_batches):
        column = reader.get_batch(number).column(reading.column)
        if column.null_count or str(column.type).startswith("dictionary"):
            return None
        if len(column) == 0:
            continue
        offset = column.buffers()[1].address - begin
        if not 0 <= offset <= size - len(column) * reading.dtype.itemsize:
            return None
        source = FileSource(reading.dtype, len(column), shared, offset)
        links.append(Link(f"record batch {number}", len(column), lambda source=source: source))  # type: ignore[misc]
    return ChainedSource(reading.dtype, links)


def _arrow_stream(file: BinaryIO, wanted: ColumnWanted) -> Elements:
    ipc = required("pyarrow.ipc", "tables")
    reading = Reading.of(ipc.open_stream(random_access(file)).schema, wanted)
    return reading.source(lambda: batches_of_stream(file, reading.columns), 0)


def batches_of_stream(file: BinaryIO, columns: Collection[str]) -> Iterator[Any]:
    """The record batches of a stream with some of their columns, each looked at before it is read. Raises InvalidInput,
    and the errors of pyarrow."""
    ipc = required("pyarrow.ipc", "tables")
    reader = projected(ipc.open_stream, file, columns)
    for _ in Messages(file, ipc.open_stream(random_access(file)).schema, columns).check_stream():
        if (batch := next(reader, None)) is None:
            return
        yield sound(batch)
    yield from map(sound, reader)
