"""Tables in files: written in every format that is read, and opened as jobs open them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter

from warpfold.contract.folders import Folders
from warpfold.contract.sources.table import TableSource
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.sources.sequential import Elements, gathered

Write = Callable[[Path, pa.Table, int], None]
"""Writes a table to a file, so many rows at a time where its format has groups of rows."""

TABLE: TypeAdapter[TableSource] = TypeAdapter(TableSource)


def opened(root: Path, path: str, **options: Any) -> Elements:
    """The column of a table below `root`, by a spec that was stored as JSON."""
    asked = TABLE.validate_python({"type": "table", "path": path, **options})
    return TABLE.validate_json(asked.model_dump_json()).open(Folders((root,), root))


def values(root: Path, path: str, **options: Any) -> list[Any]:
    """All elements of the column."""
    source = gathered(opened(root, path, **options))
    values: list[Any] = source.read(0, source.count).tolist()
    return values


def refused(root: Path, path: str, field: str = "source.path", **options: Any) -> str:
    """The error that reading the column ends with; it names `field` and the file."""
    with pytest.raises(InvalidInput) as caught:
        values(root, path, **options)
    assert caught.value.field == field, str(caught.value)
    message = str(caught.value)
    assert message.startswith(repr(path))
    assert "\n" not in message
    return message


def arrow(new: Callable[..., Any], compression: str | None = None) -> Write:
    """Writes Arrow, in record batches of so many rows."""

    def write(path: Path, table: pa.Table, rows: int) -> None:
        with new(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
            writer.write_table(table, max_chunksize=rows)

    return write


def text(delimiter: str = ",", packed: str | None = None) -> Write:
    """Writes text, whole."""

    def write(path: Path, table: pa.Table, rows: int) -> None:
        with pa.CompressedOutputStream(str(path), packed) if packed else pa.OSFile(str(path), "wb") as sink:
            pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(delimiter=delimiter))

    return write


def json_lines(path: Path, table: pa.Table, rows: int) -> None:
    """Writes JSON lines, whole."""
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


FORMATS: dict[str, Write] = {
    "x.parquet": lambda path, table, rows: pq.write_table(table, path, row_group_size=rows),
    "plain.parquet": lambda path, table, rows: pq.write_table(
        table, path, row_group_size=rows, compression="none", use_dictionary=False, write_statistics=False
    ),
    "x.arrow": arrow(pa.ipc.new_file),
    "x.feather": arrow(pa.ipc.new_file, "zstd"),
    "x.arrows": arrow(pa.ipc.new_stream),
    "x.csv": text(),
    "x.tsv": text("\t"),
    "x.csv.gz": text(packed="gzip"),
    "x.tsv.zst": text("\t", "zstd"),
    "x.jsonl": json_lines,
}
