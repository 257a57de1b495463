"""Results that are too large to stand in a job: the child writes them to files, which the worker keeps with the job.

`ArtefactWriter` takes the values of an array block by block, and `store_table` takes a table. Both leave their files,
flushed and hashed, in the folder of the attempt; the transaction that ends the job moves that folder to its place
(`worker.endings`). An attempt that fails leaves no file.
"""

import io
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from warpfold.app.artefacts.formats import ROWS
from warpfold.app.jobs.attempt import StoredResult
from warpfold.contract.artefact import PREVIEWED, Artefact, ArtefactColumn, PartName
from warpfold.contract.json_value import hex_of
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.formats.npy import head_of
from warpfold.kernels.machine.extras import required
from warpfold.kernels.ops import INTEGER, Value
from warpfold.kernels.parts.state_tables import TableOfStates
from warpfold.worker.artefact_files import Column, check_room, flush_folder, full_disk, prepared
from warpfold.worker.kinds.attempt import Attempt


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored artefact: its description, which goes into the result, and the note for the worker, which goes into the
    child's Success."""

    artefact: Artefact
    note: StoredResult


class ArtefactWriter:
    """Writes the values of a result of `shape` and `dtype` ("integer" is an integer of any size) in C order.

    `each` is how many elements entered every value, None where the numbers differ. `field` is the part of the spec that
    errors name. With `described` the exact states of the values are written, too, to a table. Use it as a context:
    unless `finish` was called, the end of the context removes the written files.

    Raises InvalidInput where the result is larger than a user may hold, and Unavailable where the disk has no room.
    """

    def __init__(
        self,
        attempt: Attempt,
        shape: tuple[int, ...],
        dtype: str,
        *,
        each: int | None,
        field: str,
        described: TableOfStates | None = None,
    ) -> None:
        self._attempt = attempt
        self._shape = shape
        self._dtype = dtype
        self._each = each
        self._field = field
        self._rows = 0
        self._preview: list[tuple[Any, ...]] = []
        self._stored = np.dtype("<i8") if dtype == INTEGER else DTYPES[dtype].numpy
        self._columns: dict[PartName, Column] = {}
        self._states: _StatesWriter | None = None
        self._finished = False
        least = 0 if described is None else len(described.values[0].states) * _LEAST_STATE + 8 * len(shape)
        row = self._stored.itemsize + 8 * (each is None) + least
        self._folder = prepared(attempt, prod(shape) * row, field)
        try:
            with full_disk():
                self._columns["values"] = self._column("values", self._stored)
                if each is None:
                    self._columns["counts"] = self._column("counts", np.dtype("<i8"))
                if described is not None:
                    self._columns["states"] = Column(self._folder / "states.arrow", None, b"")
                    self._states = _StatesWriter(self._columns["states"], described)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        for column in self._columns.values():
            column.close()
        if not self._finished:
            shutil.rmtree(self._folder, ignore_errors=True)

    def append(
        self,
        values: Sequence[Value | None] | NDArray[Any],
        counts: Sequence[int] | NDArray[np.int64],
        states: Sequence[StateColumn] = (),
    ) -> None:
        """Add the next values, how many elements entered each, and their states. A value is None where the op has
        no value."""
        missing = None
        present: Sequence[Value] | NDArray[Any]
        if isinstance(values, np.ma.MaskedArray):
            missing = np.ma.getmaskarray(values)
            present = values.filled(np.nan if values.dtype.kind == "f" else 0)
        elif isinstance(values, np.ndarray):
            present = values
        else:
            empty: Value = float("nan") if self._dtype != INTEGER and DTYPES[self._dtype].is_float else 0
            present = [empty if value is None else value for value in values]
            missing = np.array([value is None for value in values]) if None in values else None
        with full_disk():
            self._write(present)
            if missing is not None and "missing" not in self._columns:
                self._columns["missing"] = self._column("missing", np.dtype(np.bool_))
            if "missing" in self._columns:
                column = self._columns["missing"]
                while column.rows < self._rows:  # all values before the first missing value are present
                    column.append(np.zeros(min(self._rows - column.rows, ROWS), np.bool_))
                column.append(np.zeros(len(values), np.bool_) if missing is None else missing)
            if self._each is None:
                self._columns["counts"].append(np.asarray(counts, np.int64))
            if self._states is not None:
                self._states.append(states)
                check_room(self._attempt, sum(column.tell() for column in self._columns.values()), self._field)
        self._look(present, missing, counts)
        self._rows += len(values)

    def finish(self) -> Stored:
        """Finish the files, and return the description of the result. All of its bytes are on the disk then."""
        assert self._rows == prod(self._shape), "all values are there"
        with full_disk():
            if self._states is not None:
                self._states.finish()
            parts = tuple(column.finished() for column in self._columns.values())
            flush_folder(self._folder)
        self._finished = True
        axes = [ArtefactColumn(name=f"axis_{axis}", dtype="int64") for axis in range(len(self._shape))]
        value = ArtefactColumn(name="value", dtype=self._value_column())
        floats = self._dtype != INTEGER and DTYPES[self._dtype].is_float
        names = (*(axis.name for axis in axes), "value", *(["hex"] if floats else []), "count")
        artefact = Artefact(
            href=f"/v1/jobs/{self._attempt.lease.job_id}/artefact",
            formats=("npy", "arrow", "parquet", "csv"),
            shape=self._shape,
            dtype=self._dtype,
            columns=(*axes, value, ArtefactColumn(name="count", dtype="int64"), *self._of_states()),
            rows=self._rows,
            bytes=sum(part.bytes for part in parts),
            sha256=parts[0].sha256,
            parts=parts,
            count_each=self._each,
            preview_columns=names,
            preview=tuple(self._preview),
        )
        return Stored(artefact, StoredResult(artefact.bytes, self._field))

    def _of_states(self) -> Iterator[ArtefactColumn]:
        if self._states is not None:
            for name in self._states.names:
                yield ArtefactColumn(name=name, dtype="large_binary")

    def _write(self, values: Sequence[Value] | NDArray[Any]) -> None:
        if self._dtype == INTEGER and self._stored.kind == "i":
            try:
                self._columns["values"].append(np.asarray(values, np.int64))
                return
            except OverflowError:
                pass
        if self._dtype == INTEGER:
            texts = np.array([str(value) for value in values], np.bytes_)
            if texts.dtype.itemsize > self._stored.itemsize or self._stored.kind != "S":
                self._widen(texts.dtype)
            self._columns["values"].append(texts)
            return
        # A float of a narrow dtype is exact as float64, and the conversion back gives the same float. Integers of
        # uint64 on both sides of 2**63 are no array by themselves: NumPy would round them to float64.
        floats = DTYPES[self._dtype].is_float
        self._columns["values"].append(np.asarray(values, None if floats else self._stored))

    def _widen(self, dtype: "np.dtype[Any]") -> None:
        """Write the integers again, as decimal text that is wide enough for the new ones."""
        old = self._columns["values"]
        width = max(dtype.itemsize, 2 * self._stored.itemsize if self._stored.kind == "S" else 20)
        self._stored = np.dtype(f"S{width}")
        check_room(self._attempt, prod(self._shape) * width, self._field)
        new = self._column("values-as-text", self._stored)
        for piece in old.pieces():
            new.append(piece.astype(self._stored))
        old.close()
        new.rename(old.path)
        self._columns["values"] = new

    def _column(self, name: str, dtype: "np.dtype[Any]") -> "Column":
        if dtype.kind == "S":
            head = _head_of_text(dtype, self._shape)
        else:
            row = next(row for row in DTYPES.values() if row.numpy == dtype.newbyteorder("="))
            head = head_of(row.numpy, prod(self._shape), self._shape)
        return Column(self._folder / f"{name}.npy", dtype, head)

    def _value_column(self) -> str:
        if self._dtype != INTEGER:
            return self._dtype
        return "int64" if self._stored.kind == "i" else INTEGER

    def _look(
        self,
        values: Sequence[Value] | NDArray[Any],
        missing: NDArray[np.bool_] | None,
        counts: Sequence[int] | NDArray[np.int64],
    ) -> None:
        first = min(PREVIEWED - len(self._preview), len(values))
        if first <= 0:
            return
        shown = values[:first].tolist() if isinstance(values, np.ndarray) else list(values[:first])
        if missing is not None:
            shown = [None if gone else value for value, gone in zip(shown, missing[:first].tolist(), strict=True)]
        floats = self._dtype != INTEGER and DTYPES[self._dtype].is_float
        for at, value in enumerate(shown):
            index = tuple(int(axis) for axis in np.unravel_index(self._rows + at, self._shape))
            hexadecimal = () if not floats else (None if value is None else hex_of(value),)
            self._preview.append((*index, value, *hexadecimal, int(counts[at])))


_LEAST_STATE = 32
"""Bytes that a state takes in a table at least: its head and its offset."""


class _StatesWriter:
    """Writes the states of the values of an array to a table, in batches of the same rows as the other formats have."""

    def __init__(self, column: "Column", described: TableOfStates) -> None:
        self._pyarrow = required("pyarrow", "tables")
        shape = described.shape
        assert shape is not None, "the values are an array"
        self._shape = shape
        self.names = described.values[0].states
        fields = [*((name, self._pyarrow.int64()) for name in described.keys)]
        fields += [(name, self._pyarrow.large_binary()) for name in self.names]
        self._schema = self._pyarrow.schema(fields, metadata=described.metadata())
        self._file = self._pyarrow.ipc.new_file(column, self._schema)
        self._waiting: list[Any] = []
        self._rows = 0

    def append(self, states: Sequence[StateColumn]) -> None:
        """Add the states of the next values. Raises OSError."""
        rows = np.arange(self._rows, self._rows + len(states[0]), dtype=np.int64)
        indices = np.unravel_index(rows, self._shape) if self._shape else ()
        arrays = [*map(self._pyarrow.array, indices), *(column.array() for column in states)]
        self._waiting.append(self._pyarrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows += rows.size
        if sum(table.num_rows for table in self._waiting) >= ROWS:
            self._write(last=False)

    def finish(self) -> None:
        """Write the states that are still in memory. Raises OSError."""
        self._write(last=True)
        self._file.close()

    def _write(self, *, last: bool) -> None:
        table = self._pyarrow.concat_tables(self._waiting or [self._schema.empty_table()]).combine_chunks()
        whole = table.num_rows if last else table.num_rows // ROWS * ROWS
        for batch in table.slice(0, whole).to_batches(max_chunksize=ROWS):
            self._file.write_batch(batch)
        self._waiting = [table.slice(whole)]


def store_table(attempt: Attempt, table: Any, field: str) -> Stored:
    """Store a table (`pyarrow.Table`), which is the result of an attempt, and describe it. `field` is the part of the
    spec that errors name. Raises as `ArtefactWriter`, and Unavailable without pyarrow."""
    pyarrow = required("pyarrow", "tables")
    folder = prepared(attempt, table.nbytes, field)
    try:
        with full_disk():
            column = Column(folder / "table.arrow", None, b"")
            try:
                with pyarrow.ipc.new_file(column, table.schema) as writer:
                    for batch in table.to_batches(max_chunksize=ROWS):
                        writer.write_batch(batch)
                part = column.finished()
            finally:
                column.close()
            flush_folder(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    names, preview = _previewed(pyarrow, table.slice(0, PREVIEWED))
    artefact = Artefact(
        href=f"/v1/jobs/{attempt.lease.job_id}/artefact",
        formats=("arrow", "parquet", "csv"),
        shape=(table.num_rows,),
        dtype=None,
        columns=tuple(
            ArtefactColumn(name=name, dtype=str(table.schema.field(name).type)) for name in table.column_names
        ),
        rows=table.num_rows,
        bytes=part.bytes,
        sha256=part.sha256,
        parts=(part,),
        count_each=None,
        preview_columns=names,
        preview=preview,
    )
    return Stored(artefact, StoredResult(part.bytes, field))


def _previewed(pyarrow: Any, table: Any) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """The names and the rows of a preview: each float column is followed by one of its values as exact hex floats.
    Bytes are left out, for a state is of no use to a reader."""
    names: list[str] = []
    columns: list[list[Any]] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = pyarrow.types
        if kind.is_binary(column.type) or kind.is_large_binary(column.type) or kind.is_fixed_size_binary(column.type):
            continue
        values = column.to_pylist()
        plain = [
            value if isinstance(value, bool | int | float | str) or value is None else str(value) for value in values
        ]
        names.append(name)
        columns.append(plain)
        if kind.is_floating(column.type):
            names.append(f"{name}_hex")
            columns.append([None if value is None else hex_of(float(value)) for value in values])
    return tuple(names), tuple(zip(*columns, strict=True))


def _head_of_text(dtype: "np.dtype[Any]", shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    npy.write_array_header_1_0(buffer, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    return buffer.getvalue()
