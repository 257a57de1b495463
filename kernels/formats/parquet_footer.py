"""Footers of Parquet files: what they say of columns and row groups, and what of it is believed.

A footer is written apart from the pages, and some are wrong: Polars 1.44 counts the nulls of a row group once for each
of its pages. So no row is left out by a number of nulls, and a number that may be wrong is as good as none.
"""

import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, pairwise, starmap
from typing import Any, BinaryIO, Self

import numpy as np

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.hyperslab import check_elements
from warpfold.kernels.formats.naming import damaged
from warpfold.kernels.formats.parquet_pages import ColumnPages, leaves_of_words, longest_word
from warpfold.kernels.formats.row_filter import Bounds, Condition, columns_of, may_hold
from warpfold.kernels.formats.tables import random_access
from warpfold.kernels.machine.extras import required
from warpfold.kernels.places.file import ByPosition

MOST_FOOTER_BYTES = 1 << 27
"""The longest footer that is read: that of 100,000 column chunks takes some 20 MB."""

_BATCH_ROWS = 1 << 16
_NO_ROWS_BUFFER_BYTES = 1 << 12
"""With a buffer, pyarrow opens a column without reading it."""
_NS = 10**9
_SURE_SECONDS = 2**63 // _NS - 1
"""Seconds around 1970 whose nanoseconds int64 holds, whatever fraction of a second follows."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The footer of a Parquet file that is open. `schema` is pyarrow's; in it, timestamps of 96 bits have `unit`.
    `signed` says whether some columns may be encrypted, for only such a footer is signed. `stored` has, for each
    column, the numbers of the columns that are stored for it. Their paths do not tell: a column `s.a` and the field `a`
    of a column `s` have the same."""

    file: BinaryIO
    metadata: Any
    schema: Any
    signed: bool
    stored: tuple[range, ...]
    unit: str = "ns"

    @classmethod
    def of(cls, file: BinaryIO) -> Self:
        """Raises InvalidInput where the file does not end as a Parquet file, claims more of a footer than is read, or
        is encrypted as a whole; and the errors that pyarrow raises for a damaged footer."""
        length = _length(ByPosition(file))
        opened = required("pyarrow.parquet", "tables").ParquetFile(random_access(file))
        metadata, schema = opened.metadata, opened.schema_arrow
        for number in range(metadata.num_row_groups):
            check_elements(int(metadata.row_group(number).num_rows) * metadata.num_row_groups)
        stops = list(accumulate(map(_leaves, schema.types), initial=0))
        if stops[-1] != metadata.num_columns:
            raise InvalidInput("has a schema that names other columns than are stored")
        stored = tuple(starmap(range, pairwise(stops)))
        return cls(file, metadata, schema, length != metadata.serialized_size, stored)

    def reader(self, unit: str | None = None, **options: Any) -> Any:
        """The file as one thread reads it by pyarrow. A reader serves one thread."""
        return required("pyarrow.parquet", "tables").ParquetFile(
            random_access(self.file),
            metadata=self.metadata,
            pre_buffer=False,
            page_checksum_verification=True,
            coerce_int96_timestamp_unit=unit or self.unit,
            **options,
        )

    def fragment(self) -> Any:
        """The file as datasets of pyarrow read it, which takes several threads."""
        dataset = required("pyarrow.dataset", "tables")
        file_format = dataset.ParquetFileFormat(
            read_options=dataset.ParquetReadOptions(coerce_int96_timestamp_unit=self.unit),
            default_fragment_scan_options=dataset.ParquetFragmentScanOptions(page_checksum_verification=True),
        )
        return file_format.make_fragment(random_access(self.file))

    def rows_at_a_time(self, groups: Collection[int], columns: Sequence[str], most: int) -> int:
        """How many rows of the columns, at most `most`, are decoded at a time in row groups. Raises InvalidInput where
        a page becomes more bytes than the footer declares."""
        pages, rows = ColumnPages(self.file, self.metadata), most
        words = dict(leaves_of_words(self.schema, self.leaf, columns))
        for group in groups:
            for name in columns:
                if name in words:
                    as_dictionary = partial(self.reader, read_dictionary=[name])
                    longest = partial(_longest, as_dictionary, group, name)
                    rows = min(rows, pages.rows_of_words(group, words[name], most, longest))
                else:
                    for leaf in self.stored[self.schema.get_field_index(name)]:
                        pages.check(group, leaf)
        return rows

    def leaf(self, name: str) -> int | None:
        """The number of the stored column of the column `name`; None of one in parts, and of lists."""
        stored = self.stored[self.schema.get_field_index(name)]
        return stored[0] if len(stored) == 1 and self.metadata.schema.column(stored[0]).path == name else None

    def nulls(self, group: int, name: str) -> int | None:
        """How many nulls the column `name`, which is not encrypted, has in a row group; None where the footer does not
        say, or is not believed."""
        number = self.leaf(name)
        if number is None:
            return None
        if self.metadata.schema.column(number).max_definition_level == 0:
            return 0
        chunk = self.metadata.row_group(group).column(number)
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        count = int(statistics.null_count)
        plausible = 0 <= count <= chunk.num_values and not (count and self._counts_pages())
        return count if plausible else None

    def _counts_pages(self) -> bool:
        return str(self.metadata.created_by).startswith("Polars")

    def groups(self, rows: Condition | None) -> list[int]:
        """The numbers of the row groups that may hold a row which fulfils a condition."""
        every = range(self.metadata.num_row_groups)
        if rows is None:
            return list(every)
        self.check(columns_of(rows))
        return [number for number in every if may_hold(rows, self.schema, partial(self._bounds, number))]

    def _bounds(self, group: int, name: str) -> Bounds | None:
        """Two values between which all numbers or words of a column lie in a row group, in the words of `may_hold`;
        None where the writers of files do not agree on an order: Polars 1.44 orders decimals that are stored as bytes
        as if they had no sign, and others all bytes beyond ASCII as if they had one."""
        types = required("pyarrow", "tables").types
        number, kind = self.leaf(name), self.schema.field(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        word, time = types.is_string(kind) or types.is_large_string(kind), types.is_timestamp(kind)
        ordered = ("BYTE_ARRAY",) if word else ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE")
        if number is None or self.metadata.schema.column(number).physical_type not in ordered:
            return None
        statistics = self.metadata.row_group(group).column(number).statistics
        if statistics is None or not statistics.has_min_max or types.is_time(kind):
            return None
        stored = word or time or types.is_date(kind)
        least, most = (statistics.min_raw, statistics.max_raw) if stored else (statistics.min, statistics.max)
        if word and not (least.isascii() and most.isascii()):
            return None
        # Not so where one is NaN, or where unsigned numbers were ordered as if they had a sign.
        return (least, most) if least <= most else None

    def check(self, columns: Collection[str]) -> None:
        """Raise InvalidInput where one of the columns cannot be read, before anything is asked about it."""
        for name, why in self.unreadable(columns).items():
            if self.signed:
                raise InvalidInput(
                    f"is encrypted in column {name!r}, and keys cannot be given here: write this column without "
                    "encryption, or reduce another column"
                )
            raise InvalidInput(f"has a footer that is wrong about column {name!r}: {why}")

    def unreadable(self, columns: Collection[str]) -> Mapping[str, str]:
        """Those of the columns that pyarrow does not begin to read, and why: they are encrypted, or the footer says of
        them what cannot be. Asked what the footer says of such a column, pyarrow ends the process, and so it is asked
        for no rows of the column first, for which it reads nothing of the file."""
        stored = {name: self.stored[self.schema.get_field_index(name)] for name in columns if name in self.schema.names}
        if not stored:
            return {}
        reader = self.reader(buffer_size=_NO_ROWS_BUFFER_BYTES).reader
        if self._why_unreadable(reader, [*chain.from_iterable(stored.values())]) is None:
            return {}
        reasons = {name: self._why_unreadable(reader, [*leaves]) for name, leaves in stored.items()}
        return {name: why for name, why in reasons.items() if why is not None}

    def _why_unreadable(self, reader: Any, leaves: list[int]) -> str | None:
        try:
            for group in range(self.metadata.num_row_groups):
                next(reader.iter_batches(0, row_groups=[group], column_indices=leaves, use_threads=False), None)
        except (required("pyarrow", "tables").ArrowException, OSError) as error:
            return " ".join(str(error).split())[:200]
        return None

    def keeping_times(self, columns: Collection[str] | None = None) -> "Footer":
        """The same footer, whose unit keeps all timestamps of 96 bits in these columns, or in all. All of them are read
        for it, since such columns have no statistics. Raises InvalidInput where no unit keeps them."""
        wide = [name for name in self.schema.names if (columns is None or name in columns) and self._is_wide(name)]
        closed = self.unreadable(wide)
        wide = [name for name in wide if name not in closed]
        if not wide or self._all_near_1970(wide):
            return self
        units = self._units(wide)
        if not units:
            raise InvalidInput(
                f"holds timestamps of 96 bits in {' and '.join(map(repr, wide))}, of which no unit keeps all in 64 "
                "bits: write them as timestamps of one unit"
            )
        unit = units[0]
        return replace(self, unit=unit, schema=self.reader(unit).schema_arrow)

    def _is_wide(self, name: str) -> bool:
        number = self.leaf(name)
        return number is not None and str(self.metadata.schema.column(number).physical_type) == "INT96"

    def _all_near_1970(self, columns: list[str]) -> bool:
        for seconds in self._integers(columns, "s"):
            if np.any((seconds < -_SURE_SECONDS) | (seconds > _SURE_SECONDS)):
                return False
        return True

    def _units(self, columns: list[str]) -> list[str]:
        """The units that keep all timestamps of the columns, the finest first. Seconds hold any timestamp of 96 bits
        without its fraction; nanoseconds hold the fraction, but wrap around.

        Before version 23, Arrow wrote instants before 1970 with a negative time of day, which seconds take for 2⁶⁴ ns
        more, and nanoseconds for what was meant. Arrow has no other fractions of µs so far from 1970."""
        by_arrow = str(self.metadata.created_by).startswith("parquet-cpp")
        kept = {"ns": True, "us": True, "ms": True, "s": True}
        for seconds, wrapped in zip(self._integers(columns, "s"), self._integers(columns, "ns"), strict=True):
            fraction = wrapped - seconds * _NS
            near = wrapped // _NS == seconds
            if by_arrow:
                near |= (fraction % 10**3 != 0) & (seconds >= 2**63 // _NS) & (seconds <= 2**64 // _NS)
            kept["ns"] &= bool(np.all(near))
            kept["us"] &= bool(np.all((fraction % 10**3 == 0) & (abs(seconds) < 2**63 // 10**6)))
            kept["ms"] &= not np.any(fraction % 10**6)
            kept["s"] &= not np.any(fraction)
        return [unit for unit, keeps in kept.items() if keeps]

    def _integers(self, columns: list[str], unit: str) -> Iterator[Any]:
        pyarrow = required("pyarrow", "tables")
        with damaged("is damaged", pyarrow.ArrowException, OSError, ValueError):
            for batch in self.reader(unit).iter_batches(_BATCH_ROWS, columns=columns):
                for name in columns:
                    yield batch.column(name).drop_null().view(pyarrow.int64()).to_numpy()


def _longest(reader: Callable[[], Any], group: int, name: str) -> int:
    return longest_word(reader(), group, name)


def _leaves(kind: Any) -> int:
    """How many columns are stored for one of pyarrow's type `kind`."""
    kind = getattr(kind, "storage_type", kind)
    return sum(_leaves(kind.field(number).type) for number in range(kind.num_fields)) or 1


def _length(file: ByPosition) -> int:
    """How many bytes the footer takes."""
    size = file.size
    end = file.read(max(0, size - 8), 8)
    if end[4:] == b"PARE":
        raise InvalidInput("is a Parquet file that is encrypted as a whole, and keys cannot be given here: decrypt it")
    if len(end) < 8 or end[4:] != b"PAR1":
        raise InvalidInput("is not a whole Parquet file: it does not end as one")
    (length,) = struct.unpack("<I", end[:4])
    if length > min(size, MOST_FOOTER_BYTES):
        raise InvalidInput(f"is not a whole Parquet file: its footer claims {length:,} bytes")
    return int(length)
