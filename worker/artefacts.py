"""Results that are too large to stand in a job: the child writes them to files, which the worker keeps with the job.

`ArtefactWriter` takes the values of an array block by block, and `store_table` takes a table. Both leave their files,
flushed and hashed, in the folder of the attempt; the transaction that ends the job moves that folder to its place
(`worker.endings`). An attempt that fails leaves no file.
"""

import errno
import io
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from warpfold.app.artefacts.formats import ROWS
from warpfold.app.datasets.digest import FollowingDigest
from warpfold.app.jobs.attempt import StoredResult
from warpfold.contract.artefact import PREVIEWED, Artefact, ArtefactColumn, ArtefactPart, PartName
from warpfold.contract.folders import incoming_artefact
from warpfold.contract.json_value import hex_of
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.kernels.extras import required
from warpfold.kernels.npy import head_of
from warpfold.kernels.ops import INTEGER, Value
from warpfold.worker.kinds.attempt import Attempt


@dataclass(frozen=True, slots=True)
class Stored:
    """What was written: its description, which belongs into the result, and the note for the worker, which belongs into
    the child's Success."""

    artefact: Artefact
    note: StoredResult


class ArtefactWriter:
    """Writes the values of a result of `shape` and `dtype` ("integer" is an integer of any size) in C order.

    `each` is how many elements entered every value, None where the numbers differ. `field` is the part of the spec that
    errors name. Use it as a context: unless `finish` was called, its end removes what was written.

    Raises InvalidInput where the result is larger than a user may hold, and Unavailable where the disk has no room.
    """

    def __init__(self, attempt: Attempt, shape: tuple[int, ...], dtype: str, *, each: int | None, field: str) -> None:
        self._attempt = attempt
        self._shape = shape
        self._dtype = dtype
        self._each = each
        self._field = field
        self._rows = 0
        self._preview: list[tuple[Any, ...]] = []
        self._stored = np.dtype("<i8") if dtype == INTEGER else DTYPES[dtype].numpy
        self._columns: dict[PartName, _Column] = {}
        self._finished = False
        self._folder = _prepared(attempt, prod(shape) * (self._stored.itemsize + 8 * (each is None)), field)
        try:
            with _full_disk():
                self._columns["values"] = self._column("values", self._stored)
                if each is None:
                    self._columns["counts"] = self._column("counts", np.dtype("<i8"))
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

    def append(self, values: Sequence[Value | None] | NDArray[Any], counts: Sequence[int] | NDArray[np.int64]) -> None:
        """Add the next values, and how many elements entered each. A value is None where the op has none."""
        missing = None
        if isinstance(values, np.ndarray):
            present: Sequence[Value] | NDArray[Any] = values
        else:
            empty: Value = float("nan") if self._dtype != INTEGER and DTYPES[self._dtype].is_float else 0
            present = [empty if value is None else value for value in values]
            missing = np.array([value is None for value in values]) if None in values else None
        with _full_disk():
            self._write(present)
            if missing is not None and "missing" not in self._columns:
                self._columns["missing"] = self._column("missing", np.dtype(np.bool_))
            if "missing" in self._columns:
                column = self._columns["missing"]
                while column.rows < self._rows:  # the values before the first missing one are all present
                    column.append(np.zeros(min(self._rows - column.rows, ROWS), np.bool_))
                column.append(np.zeros(len(values), np.bool_) if missing is None else missing)
            if self._each is None:
                self._columns["counts"].append(np.asarray(counts, np.int64))
        self._look(present, missing, counts)
        self._rows += len(values)

    def finish(self) -> Stored:
        """The description of the result. All of it is on the disk now."""
        assert self._rows == prod(self._shape), "all values are there"
        with _full_disk():
            parts = tuple(column.finished() for column in self._columns.values())
            _flush(self._folder)
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
            columns=(*axes, value, ArtefactColumn(name="count", dtype="int64")),
            rows=self._rows,
            bytes=sum(part.bytes for part in parts),
            sha256=parts[0].sha256,
            parts=parts,
            count_each=self._each,
            preview_columns=names,
            preview=tuple(self._preview),
        )
        return Stored(artefact, StoredResult(artefact.bytes, self._field))

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
        # A float of a narrow dtype is exact as float64, and the conversion back gives the same float.
        self._columns["values"].append(np.asarray(values))

    def _widen(self, dtype: "np.dtype[Any]") -> None:
        """Write the integers again, as decimal text that is wide enough for the new ones."""
        old = self._columns["values"]
        width = max(dtype.itemsize, 2 * self._stored.itemsize if self._stored.kind == "S" else 20)
        self._stored = np.dtype(f"S{width}")
        _check_room(self._attempt, prod(self._shape) * width, self._field)
        new = self._column("values-as-text", self._stored)
        for piece in old.pieces():
            new.append(piece.astype(self._stored))
        old.close()
        new.rename(old.path)
        self._columns["values"] = new

    def _column(self, name: str, dtype: "np.dtype[Any]") -> "_Column":
        if dtype.kind == "S":
            head = _head_of_text(dtype, self._shape)
        else:
            row = next(row for row in DTYPES.values() if row.numpy == dtype.newbyteorder("="))
            head = head_of(row, prod(self._shape), self._shape)
        return _Column(self._folder / f"{name}.npy", dtype, head)

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


def store_table(attempt: Attempt, table: Any, field: str) -> Stored:
    """Store a table (`pyarrow.Table`), which is the result of an attempt, and describe it. `field` is the part of the
    spec that errors name. Raises as `ArtefactWriter`, and Unavailable without pyarrow."""
    pyarrow = required("pyarrow", "tables")
    folder = _prepared(attempt, table.nbytes, field)
    try:
        with _full_disk():
            column = _Column(folder / "table.arrow", None, b"")
            try:
                with pyarrow.ipc.new_file(column, table.schema) as writer:
                    for batch in table.to_batches(max_chunksize=ROWS):
                        writer.write_batch(batch)
                part = column.finished()
            finally:
                column.close()
            _flush(folder)
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


class _Column:
    """A file of an artefact that is written from its beginning to its end, and hashed and flushed meanwhile. A writer
    of files of pyarrow takes it as a file, too."""

    def __init__(self, path: Path, dtype: "np.dtype[Any] | None", head: bytes) -> None:
        self.path = path
        self.rows = 0
        self.closed = False
        self._dtype = dtype
        self._head = len(head)
        self._file = open(path, "x+b", buffering=0, opener=_privately)  # noqa: SIM115 (closed by `close`)
        self._digest = FollowingDigest(self._file.fileno())
        self._end = 0
        try:
            self.write(head)
        except BaseException:
            self.close()
            raise

    def append(self, values: NDArray[Any]) -> None:
        """Add values, converted to the dtype of the column. Raises OSError."""
        assert self._dtype is not None, "the column is an array"
        self.write(np.ascontiguousarray(values, self._dtype).view(np.uint8).data)
        self.rows += values.size

    def write(self, data: Any) -> int:
        """Add bytes. Raises OSError."""
        view = memoryview(data).cast("B")
        at = 0
        while at < len(view):
            at += self._file.write(view[at:]) or 0
        self._end += at
        self._digest.advance(self._end)
        return at

    def tell(self) -> int:
        return self._end

    def flush(self) -> None:
        """Do nothing: no byte waits in memory."""

    def pieces(self) -> Iterator[NDArray[Any]]:
        """All values that were written, piece by piece."""
        assert self._dtype is not None, "the column is an array"
        self._file.seek(self._head)
        for start in range(0, self.rows, ROWS):
            yield np.fromfile(self._file, self._dtype, min(ROWS, self.rows - start))

    def rename(self, path: Path) -> None:
        """Take the place of another file."""
        self.path = self.path.rename(path)

    def finished(self) -> ArtefactPart:
        """The description of the file, all of which is on the disk now. Raises OSError."""
        name: Any = self.path.stem
        digest = self._digest.hexdigest()
        descr = None if self._dtype is None else self._dtype.str if self._dtype.kind != "V" else self._dtype.name
        kind: Any = self.path.suffix[1:]
        return ArtefactPart(name=name, format=kind, dtype=descr, bytes=self._end, sha256=digest)

    def close(self) -> None:
        if not self._file.closed:
            self._digest.close()
            self._file.close()


def _head_of_text(dtype: "np.dtype[Any]", shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    npy.write_array_header_1_0(buffer, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def _prepared(attempt: Attempt, nbytes: int, field: str) -> Path:
    """The empty folder of an attempt, on a disk that has room for `nbytes`."""
    artefacts = attempt.folders.artefacts
    if artefacts is None:
        raise Unavailable("this worker has no folder for results that are stored")
    folder = incoming_artefact(artefacts.path, attempt.lease.job_id, attempt.lease.attempt)
    shutil.rmtree(folder, ignore_errors=True)
    with _full_disk():
        folder.mkdir(mode=0o700, parents=True)
        try:
            _check_room(attempt, nbytes, field)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder


def _check_room(attempt: Attempt, nbytes: int, field: str) -> None:
    artefacts = attempt.folders.artefacts
    assert artefacts is not None, "the folder was asked for before"
    if nbytes > artefacts.most_bytes:
        raise InvalidInput(
            f"{field}: the result would have {nbytes:,} bytes, and a user may hold {artefacts.most_bytes:,}", field
        )
    disk = os.statvfs(artefacts.path)
    if disk.f_bavail * disk.f_frsize - nbytes < artefacts.keep_free_bytes:
        raise Unavailable(f"the disk of stored results has no room for the {nbytes:,} bytes of this one")


@contextmanager
def _full_disk() -> Iterator[None]:
    """Turn an error of the disk within the block into Unavailable."""
    try:
        yield
    except OSError as error:
        why = "it is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else os.strerror(error.errno or 0).lower()
        raise Unavailable(f"the result cannot be stored on the disk: {why}") from error


def _flush(folder: Path) -> None:
    """Flush the names in `folder`, and its own name, so that a crash of the machine loses none of them."""
    for place in (folder, folder.parent):
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
