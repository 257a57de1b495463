"""Columns of Parquet files, a row group at a time; several row groups are decoded at once where they are small."""

import struct
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, BinaryIO

from warpfold.kernels.cores import usable_cores
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.extras import required
from warpfold.kernels.formats.tables import ColumnWanted, Reading, random_access
from warpfold.kernels.sequential import SequentialSource, Tally

MOST_FOOTER_BYTES = 1 << 27
"""The longest footer that is read: that of 100,000 column chunks takes some 20 MB."""

_AHEAD_BYTES = 1 << 27
"""What row groups that are decoded ahead take together; a larger one is decoded batch after batch."""

_BATCH_ROWS = 1 << 17
_BUFFER_BYTES = 1 << 22
"""What is read at a time of a large row group: without it, all of a column in it would be in memory."""


def open_parquet(file: BinaryIO, wanted: ColumnWanted) -> SequentialSource:
    """The elements of a column. Row groups whose statistics exclude all their rows are not read. Raises InvalidInput,
    and what pyarrow raises of a damaged file."""
    dataset, parquet = required("pyarrow.dataset", "tables"), required("pyarrow.parquet", "tables")
    check_footer(file)
    fragment = dataset.ParquetFileFormat().make_fragment(random_access(file))
    schema, metadata = fragment.physical_schema, fragment.metadata
    reading = Reading.of(schema, wanted)
    chosen = fragment if reading.rows is None else fragment.subset(reading.rows, schema=schema)
    groups = [group.id for group in chosen.row_groups]
    rows = sum(metadata.row_group(group).num_rows for group in groups)

    tally, counting = Tally(), Lock()

    def decoded(group: int, threads: int) -> Any:
        began = time.perf_counter()
        table = _decoded(opened, group, reading)
        with counting:
            tally.ahead_s += (time.perf_counter() - began) / threads
        return table

    def opened(buffer_bytes: int = 0) -> Any:
        return parquet.ParquetFile(random_access(file), metadata=metadata, pre_buffer=False, buffer_size=buffer_bytes)

    def batches() -> Iterator[Any]:
        sizes = {group: _bytes(metadata.row_group(group), reading.columns) for group in groups}
        threads = usable_cores()
        with ThreadPoolExecutor(threads, "decode") as pool:
            waiting: deque[tuple[int, Future[Any]]] = deque()
            coming, ahead = deque(groups), 0
            try:
                while coming or waiting:
                    while coming and len(waiting) < 2 * threads and ahead + sizes[coming[0]] <= _AHEAD_BYTES:
                        group = coming.popleft()
                        ahead += sizes[group]
                        waiting.append((group, pool.submit(decoded, group, threads)))
                    if waiting:
                        group, coming_table = waiting.popleft()
                        yield from coming_table.result().to_batches()
                        ahead -= sizes[group]
                    else:
                        yield from opened(_BUFFER_BYTES).iter_batches(_BATCH_ROWS, [coming.popleft()], reading.columns)
            finally:
                for _, coming_table in waiting:
                    coming_table.cancel()

    nulls = [nulls_in(metadata.row_group(group), reading.column) for group in groups]
    known = reading.rows is None and None not in nulls
    return reading.source(batches, rows - sum(null or 0 for null in nulls) if known else None, rows, tally)


def _decoded(opened: Any, group: int, reading: Reading) -> Any:
    # One thread decodes a row group; a reader serves one thread.
    return opened().read_row_group(group, columns=list(reading.columns), use_threads=False)


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


def _bytes(group: Any, columns: tuple[str, ...]) -> int:
    """What the columns take in memory, or the whole row group, as far as the footer tells."""
    chunks = (group.column(number) for number in range(group.num_columns))
    taken = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in columns)
    return max(int(taken), 8 * int(group.num_rows) * len(columns))


def nulls_in(group: Any, column: str) -> int | None:
    """How many nulls a column has in a row group; None where its statistics do not say."""
    for number in range(group.num_columns):
        chunk = group.column(number)
        if chunk.path_in_schema == column:
            return nulls_of(chunk)
    return None


def nulls_of(chunk: Any) -> int | None:
    """How many nulls a column chunk has; None where its statistics do not say."""
    statistics = chunk.statistics
    count = None if statistics is None or not statistics.has_null_count else statistics.null_count
    return None if count is None else int(count)
