"""Columns of Parquet files, in sections of one row group or of several small ones, which threads decode at once.

Pages that carry a checksum are held to it: no other part of the format would show a changed digit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import local
from typing import Any, BinaryIO, Self

from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.parquet_footer import Footer
from warpfold.kernels.formats.row_filter import columns_of
from warpfold.kernels.formats.tables import ColumnWanted, Reading
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import NullPolicy
from warpfold.kernels.sources.sections import AHEAD_BYTES, in_turn
from warpfold.kernels.sources.sequential import Section, SequentialSource, Tally

_BATCH_ROWS = 1 << 16
_BUFFER_BYTES = 1 << 22
"""The bytes that are read at a time of large row groups."""


def open_parquet(file: BinaryIO, wanted: ColumnWanted) -> SequentialSource:
    """The elements of a column. Row groups are not read of which the least and the greatest values say that no row
    fulfils the filter. Raises InvalidInput, and the errors that pyarrow raises for a damaged file."""
    footer = Footer.of(file)
    chosen = footer.schema.names if wanted.column is None else [wanted.column]
    needed = {*chosen, *(columns_of(wanted.rows) if wanted.rows is not None else ())}
    footer.check(needed)
    footer = footer.keeping_times(needed)
    return _source(footer, footer.groups(wanted.rows), Reading.of(footer.schema, wanted))


def _source(footer: Footer, groups: Sequence[int], reading: Reading) -> SequentialSource:
    table, tally = _Table(footer, reading, groups), Tally()
    return SequentialSource(
        reading.dtype,
        lambda: in_turn(table.sections(tally), tally),
        table.count,
        table.rows,
        tally,
        # A null is refused by its index.
        sections=None if table.count is None and reading.nulls is NullPolicy.RAISE else lambda: table.sections(tally),
        meaning=reading.meaning,
        nulls=reading.with_nulls(partial(_source, footer, groups)),
    )


class _Table:
    """The row groups `groups` of a file. A thread reads one row group at a time, or several small ones."""

    def __init__(self, footer: Footer, reading: Reading, groups: Sequence[int]) -> None:
        self._footer, self._reading = footer, reading
        self._own = local()
        self._groups = [_Group.of(footer, group, reading) for group in groups]
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
            columns, elements_read = list(self._reading.columns), 0
            rows = self._footer.rows_at_a_time(numbers, columns, _BATCH_ROWS)
            batches = self._opened().iter_batches(rows, numbers, columns, use_threads=False)
            for elements in self._reading.elements(batches, start or 0, tally):
                elements_read += elements.size
                if count is not None and elements_read > count:
                    raise self._contradiction(run)
                yield elements
            if count is not None and elements_read < count:
                raise self._contradiction(run)

        return Section(make, sum(group.nbytes for group in run), start, count)

    def _opened(self) -> Any:
        """The file as one thread reads it."""
        if not hasattr(self._own, "reader"):
            self._own.reader = self._footer.reader(buffer_size=self._buffer_bytes)
        return self._own.reader

    def _contradiction(self, run: Sequence["_Group"]) -> InvalidInput:
        """The error of row groups whose pages have another number of elements than the footer says."""
        rows, last = sum(group.rows for group in run), "" if len(run) == 1 else f" to {run[-1].number}"
        column, writer = self._reading.column, str(self._footer.metadata.created_by)[:80]
        return InvalidInput(
            f"has a footer, written by {writer!r}, that contradicts its pages in column {column!r}: it counts "
            f"{rows - _values(run):,} nulls in the {rows:,} rows of row group {run[0].number}{last}, and the pages "
            "hold another number; write the file anew, or filter the nulls out, for which none is counted in advance"
        )


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group: its number, its number of rows, how many of them give no element (None where that is not known), and
    the bytes of the columns that are read."""

    number: int
    rows: int
    nulls: int | None
    nbytes: int

    @classmethod
    def of(cls, footer: Footer, number: int, reading: Reading) -> Self:
        group = footer.metadata.row_group(number)
        rows = int(group.num_rows)
        stored = [at for at in map(footer.leaf, reading.columns) if at is not None]
        taken = sum(int(group.column(at).total_uncompressed_size) for at in stored)
        nulls = 0 if reading.keeps_nulls else footer.nulls(number, reading.column)
        return cls(number, rows, nulls, max(taken, 8 * rows * len(reading.columns)))


def _values(run: Sequence[_Group]) -> int:
    return sum(group.rows - (group.nulls or 0) for group in run)
