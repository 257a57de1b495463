"""Converts a stored result to another format, batch by batch, so that no result is ever whole in memory."""

import base64
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from warpfold.app.csv_text import CsvText, cell
from warpfold.contract.artefact import Artefact
from warpfold.contract.json_value import hex_of
from warpfold.kernels.dtypes import DTYPES

ROWS = 1 << 16
STATE = "large_binary"
"""The type of a column of exact states."""

_ROWS_OF_CSV = 1 << 14
"""How many rows of CSV are made at a time: about a megabyte."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Some rows of a stored array: the number of the first, and arrays of one length. `values` are of the stored dtype,
    and `missing` is true where there is no value. `states` are arrays of pyarrow."""

    start: int
    values: NDArray[Any]
    missing: NDArray[np.bool_]
    counts: NDArray[np.int64]
    states: tuple[Any, ...] = ()

    def indices(self, shape: Sequence[int]) -> tuple[NDArray[np.int64], ...]:
        """The index of each row on every axis."""
        rows = np.arange(self.start, self.start + self.values.size, dtype=np.int64)
        return tuple(np.unravel_index(rows, shape)) if shape else ()


def batches(artefact: Artefact, folder: Path, size: int, begin: int = 0) -> Iterator[StoredRows]:
    """The rows of a stored array from `begin` on, `size` at a time. Raises OSError."""
    files = {part.name: _Column(folder / f"{part.name}.npy", begin) for part in artefact.parts if part.format == "npy"}
    states = _States(folder, size) if artefact.part("states") is not None else None
    try:
        for start in range(begin, prod(artefact.shape), size):
            length = min(size, prod(artefact.shape) - start)
            each = artefact.count_each
            counts = np.full(length, each, np.int64) if each is not None else files["counts"].read(length)
            missing = files["missing"].read(length) if "missing" in files else np.zeros(length, np.bool_)
            row_states = () if states is None else states.read(start, length)
            yield StoredRows(start, files["values"].read(length), missing, counts, row_states)
    finally:
        for column in files.values():
            column.close()


class _Column:
    """A stored .npy file, read from its element `begin` on. It is read, not mapped: a fault of the disk behind a map
    would kill the process."""

    def __init__(self, path: Path, begin: int) -> None:
        self._file: BinaryIO = path.open("rb")
        npy.read_magic(self._file)
        _, _, self._dtype = npy.read_array_header_1_0(self._file)
        self._file.seek(begin * self._dtype.itemsize, os.SEEK_CUR)

    def read(self, count: int) -> NDArray[Any]:
        """The next `count` values. Raises OSError where the file ends before."""
        values = np.fromfile(self._file, self._dtype, count)
        if values.size < count:
            raise OSError(f"{self._file.name} is shorter than it was stored")
        return values

    def close(self) -> None:
        self._file.close()


class _States:
    """The stored states of the values of an array, of which each batch but the last has ROWS rows."""

    def __init__(self, folder: Path, size: int) -> None:
        import pyarrow

        assert ROWS % size == 0, "rows are read within a batch"
        self._file = pyarrow.ipc.open_file(pyarrow.OSFile(str(folder / "states.arrow")))
        self._batch: Any = None

    def read(self, start: int, length: int) -> tuple[Any, ...]:
        if start % ROWS == 0 or self._batch is None:
            self._batch = self._file.get_batch(start // ROWS)
        columns = [column for column in self._batch.columns if str(column.type) == STATE]
        return tuple(column.slice(start % ROWS, length) for column in columns)


def listed(values: NDArray[Any]) -> list[Any]:
    """Stored values as Python has them: integers that are stored as text are integers again."""
    if values.dtype.kind == "S":
        return [int(text) if text else None for text in values.tolist()]
    if values.dtype.kind == "V":
        return values.astype(np.float64).tolist()  # type: ignore[no-any-return]
    return values.tolist()  # type: ignore[no-any-return]


class CsvPlace(NamedTuple):
    """How far a file of CSV has come: the number of a batch of rows, and rows of it. An array is one batch."""

    batch: int
    row: int


CSV_BEGIN = CsvPlace(0, 0)


def csv_piece(artefact: Artefact, folder: Path, place: CsvPlace) -> tuple[bytes, CsvPlace | None]:
    """The next rows of a stored result as CSV, the names of the columns before the first, and the place behind these
    rows; None at the end. It needs nothing but its arguments, so that any process may make the next piece. Raises
    OSError, and ImportError without pyarrow.

    Rows of an array have the index on every axis, value, hex and count, as a result has them that is not stored. In a
    table bytes are in base64. A null is an empty cell.
    """
    if artefact.part("table") is not None:
        return _piece_of_table(folder, place)
    states = [column.name for column in artefact.columns if column.dtype == STATE]
    text = CsvText([*_axes(artefact), "value", "hex", "count", *states], begun=place != CSV_BEGIN)
    for rows in islice(batches(artefact, folder, _ROWS_OF_CSV, place.row), 1):
        values = listed(rows.values)
        if rows.missing.any():
            values = [None if gone else value for value, gone in zip(values, rows.missing.tolist(), strict=True)]
        indices, counts = [axis.tolist() for axis in rows.indices(artefact.shape)], rows.counts.tolist()
        if set(map(type, values)) == {float} and not rows.states:
            whole = [map(str, column) for column in (*indices, counts)]
            text.add_numbers([*whole[:-1], map(repr, values), map(float.hex, values), whole[-1]])
        else:
            hexes = [None if value is None else hex_of(value) for value in values]
            states_of_rows = [map(_cell, column.to_pylist()) for column in rows.states]
            text.add(zip(*indices, values, hexes, counts, *states_of_rows, strict=True))
    following = place.row + _ROWS_OF_CSV
    return text.taken(), CsvPlace(0, following) if following < prod(artefact.shape) else None


def _piece_of_table(folder: Path, place: CsvPlace) -> tuple[bytes, CsvPlace | None]:
    import pyarrow

    with pyarrow.OSFile(str(folder / "table.arrow")) as file:
        table = pyarrow.ipc.open_file(file)
        text = CsvText(table.schema.names, begun=place != CSV_BEGIN)
        if place.batch == table.num_record_batches:  # without rows
            return text.taken(), None
        batch = table.get_batch(place.batch)
        columns = [list(map(_cell, column.to_pylist())) for column in batch.slice(place.row, _ROWS_OF_CSV).columns]
        text.add(zip(*columns, strict=True))
        following = CsvPlace(place.batch, place.row + _ROWS_OF_CSV)
        if following.row >= batch.num_rows:
            following = CsvPlace(place.batch + 1, 0)
        return text.taken(), following if following.batch < table.num_record_batches else None


def _axes(artefact: Artefact) -> list[str]:
    return [f"axis_{axis}" for axis in range(len(artefact.shape))]


def record_batches(artefact: Artefact, folder: Path) -> "tuple[Any, Iterator[Any]]":
    """The schema and the rows of a stored result, as pyarrow has them. Raises ImportError without pyarrow."""
    import pyarrow

    if artefact.part("table") is not None:
        table = pyarrow.ipc.open_file(pyarrow.OSFile(str(folder / "table.arrow")))
        return table.schema, (table.get_batch(number) for number in range(table.num_record_batches))
    types = {
        "integer": pyarrow.string(),
        "bfloat16": pyarrow.float32(),
        "string": pyarrow.string(),
        STATE: pyarrow.large_binary(),
    }
    fields = [
        pyarrow.field(column.name, types.get(column.dtype) or pyarrow.from_numpy_dtype(DTYPES[column.dtype].numpy))
        for column in artefact.columns
    ]
    described = {}
    if artefact.part("states") is not None:
        described = pyarrow.ipc.open_file(pyarrow.OSFile(str(folder / "states.arrow"))).schema.metadata
    schema = pyarrow.schema(fields, {"shape": str(list(artefact.shape)), **described})

    def made() -> Iterator[Any]:
        for batch in batches(artefact, folder, ROWS):
            values = batch.values
            if values.dtype.kind == "S":
                values = values.astype(np.str_).astype(object)
            elif values.dtype.kind == "V":
                values = values.astype(np.float32)
            arrays = [*batch.indices(artefact.shape), values, batch.counts]
            masks = [*(None for _ in artefact.shape), batch.missing, None]
            columns = [
                pyarrow.array(array, field.type, mask=mask)
                for array, field, mask in zip(arrays, schema, masks, strict=False)
            ]
            yield pyarrow.record_batch([*columns, *batch.states], schema=schema)

    return schema, made()


class _Sink(io.RawIOBase):
    """A file object for a writer: it collects the bytes written, and the caller takes them piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._length

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._length += len(piece)
        return len(piece)

    def drained(self) -> bytes:
        """The bytes that were written since the last call."""
        written = b"".join(self._pieces)
        self._pieces.clear()
        return written


def arrow_of(artefact: Artefact, folder: Path) -> Iterator[bytes]:
    """The rows as an Arrow file."""
    import pyarrow

    schema, made = record_batches(artefact, folder)
    sink = _Sink()
    with pyarrow.ipc.new_file(sink, schema) as writer:
        for batch in made:
            writer.write_batch(batch)
            yield sink.drained()
    yield sink.drained()


def parquet_of(artefact: Artefact, folder: Path) -> Iterator[bytes]:
    """The rows as a Parquet file."""
    import pyarrow.parquet

    schema, made = record_batches(artefact, folder)
    sink = _Sink()
    with pyarrow.parquet.ParquetWriter(sink, schema) as writer:
        for batch in made:
            writer.write_batch(batch)
            yield sink.drained()
    yield sink.drained()


def _cell(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else cell(value)
