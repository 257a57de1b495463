"""Columns of Parquet files, in sections of one row group or of several small ones, which threads decode at once.

Pages that carry a checksum are held to it: no other part of the format would show a changed digit."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import local
from typing import Any, BinaryIO, Self

from numpy.typing import NDArray

from warpfold.kernels.cores import usable_cores
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.extras import required
from warpfold.kernels.formats.row_filter import excludes_groups
from warpfold.kernels.formats.tables import ColumnWanted, Reading, random_access
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.sections import AHEAD_BYTES, in_turn
from warpfold.kernels.sequential import Section, SequentialSource, Tally

MOST_FOOTER_BYTES = 1 << 27
"""The longest footer that is read: that of 100,000 column chunks takes some 20 MB."""

_BATCH_ROWS = 1 << 16
_BUFFER_BYTES = 1 << 22
"""The bytes that are read at a time of large row groups."""


def open_parquet(file: BinaryIO, wanted: ColumnWanted) -> SequentialSource:
    """The elements of a column. Row groups whose statistics exclude all their rows are not read. Raises InvalidInput,
    and the errors that pyarrow raises for a damaged file."""
    dataset = required("pyarrow.dataset", "tables")
    check_footer(file)
    fragment = dataset.ParquetFileFormat().make_fragment(random_access(file))
    schema, metadata = fragment.physical_schema, fragment.metadata
    reading = Reading.of(schema, wanted)
    excluding = wanted.rows is not None and excludes_groups(wanted.rows, schema)
    chosen = fragment.subset(reading.rows, schema=schema) if excluding else fragment
    return _source(file, metadata, [group.id for group in chosen.row_groups], reading)


def _source(file: BinaryIO, metadata: Any, groups: Sequence[int], reading: Reading) -> SequentialSource:
    table, tally = _Table(file, metadata, reading, groups), Tally()
    return SequentialSource(
        reading.dtype,
        lambda: in_turn(table.sections(tally), tally),
        table.count,
        table.rows,
        tally,
        # A null is refused by its index.
        sections=None if table.count is None and reading.nulls is NullPolicy.RAISE else lambda: table.sections(tally),
        meaning=reading.meaning,
        nulls=reading.with_nulls(partial(_source, file, metadata, groups)),
    )


class _Table:
    """The row groups `groups` of a file. A thread reads one row group at a time, or several small ones."""

    def __init__(self, file: BinaryIO, metadata: Any, reading: Reading, groups: Sequence[int]) -> None:
        self._file, self._metadata, self._reading = file, metadata, reading
        self._own = local()
        at = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
        columns = [at[name] for name in reading.columns if name in at]  # nested columns have other paths
        self._groups = [
            _Group.of(metadata.row_group(group), group, at.get(reading.column), columns) for group in groups
        ]
        if reading.keeps_nulls:
            self._groups = [replace(group, nulls=0) for group in self._groups]
        nulls = [group.nulls for group in self._groups]
        known = reading.rows is None and None not in nulls
        self.rows = sum(group.rows for group in self._groups)
        self.count = self.rows - sum(null or 0 for null in nulls) if known else None
        # A row group that is read whole has all of its column in memory at once, so a large one is read a part at a
        # time.
        large = max((group.nbytes for group in self._groups), default=0) * usable_cores() > AHEAD_BYTES
        self._buffer_bytes = _BUFFER_BYTES if large else 0

    def sections(self, tally: Tally) -> Iterator[Section]:
        """The sections of the file. Neighbouring small row groups make one section."""
        start: int | None = None if self.count is None else 0
        run: list[_Group] = []
        for group in self._groups:
            if run and sum(before.rows for before in run) + group.rows > _BATCH_ROWS:
                yield self._section(run, start, tally)
                start, run = None if start is None else start + _values(run), []
            run.append(group)
        if run:
            yield self._section(run, start, tally)

    def _section(self, run: Sequence["_Group"], start: int | None, tally: Tally) -> Section:
        numbers, count = [group.number for group in run], None if start is None else _values(run)

        def make() -> Iterator[NDArray[Any]]:
            columns = list(self._reading.columns)
            batches = self._opened().iter_batches(_BATCH_ROWS, numbers, columns, use_threads=False)
            return self._reading.elements(batches, start or 0, tally)

        return Section(make, sum(group.nbytes for group in run), start, count)

    def _opened(self) -> Any:
        """The file as one thread reads it. A reader serves one thread."""
        if not hasattr(self._own, "reader"):
            parquet = required("pyarrow.parquet", "tables")
            self._own.reader = parquet.ParquetFile(
                random_access(self._file),
                metadata=self._metadata,
                pre_buffer=False,
                buffer_size=self._buffer_bytes,
                page_checksum_verification=True,
            )
        return self._own.reader


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group: its number, its number of rows, how many of them give no element (None where that is not known), and
    the bytes of the columns that are read."""

    number: int
    rows: int
    nulls: int | None
    nbytes: int

    @classmethod
    def of(cls, group: Any, number: int, column: int | None, columns: Sequence[int]) -> Self:
        rows = int(group.num_rows)
        taken = sum(int(group.column(at).total_uncompressed_size) for at in columns)
        nulls = None if column is None else nulls_of(group.column(column))
        return cls(number, rows, nulls, max(taken, 8 * rows * len(columns)))


def _values(run: Sequence[_Group]) -> int:
    return sum(group.rows - (group.nulls or 0) for group in run)


def check_footer(file: BinaryIO) -> None:
    """Raise InvalidInput where a file does not end as a Parquet file, or claims more of a footer than is read."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    end = file.read(8)
    if len(end) < 8 or end[4:] not in (b"PAR1", b"PARE"):
        raise InvalidInput("is not a whole Parquet file: it does not end as one")
    (length,) = struct.unpack("<I", end[:4])
    if length > min(size, MOST_FOOTER_BYTES):
        raise InvalidInput(f"is not a whole Parquet file: its footer claims {length:,} bytes")


def checked_format() -> Any:
    """Parquet as the datasets of pyarrow read it, with the checksums of pages verified."""
    dataset = required("pyarrow.dataset", "tables")
    checked = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    return dataset.ParquetFileFormat(default_fragment_scan_options=checked)


def nulls_of(chunk: Any) -> int | None:
    """How many nulls a column chunk has; None where its statistics do not say."""
    statistics = chunk.statistics
    count = None if statistics is None or not statistics.has_null_count else statistics.null_count
    return None if count is None else int(count)
