"""Measurements as CSV and Parquet: one row a point, the columns of `MeasurementView` in its order."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from types import NoneType
from typing import Any, get_args, get_origin
from uuid import UUID

from warpfold.app.http.errors import Unavailable
from warpfold.app.results.repository import Measured
from warpfold.app.results.views import MeasurementView

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"


def csv_of(rows: Sequence[Measured]) -> bytes:
    """CSV (RFC 4180) with a line of names. What is unknown is empty; several flags or reasons stand apart by spaces;
    floats have the fewest digits that read back as the same number."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(MeasurementView.model_fields)
    for row in rows:
        writer.writerow(_cell(value) for value in MeasurementView.of(row).model_dump(mode="json").values())
    return text.getvalue().encode()


def _cell(value: object) -> object:
    return " ".join(value) if isinstance(value, list) else value


def parquet_of(rows: Sequence[Measured]) -> bytes:
    """Parquet with typed columns, also where there are no rows. Raises Unavailable if pyarrow is not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise Unavailable("This server cannot write Parquet: pyarrow is not installed.") from error
    text = pyarrow.string()
    types = {
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
        datetime: pyarrow.timestamp("us", tz="UTC"),
        list: pyarrow.list_(text),
    }
    kinds = {name: _kind(field.annotation) for name, field in MeasurementView.model_fields.items()}
    schema = pyarrow.schema([(name, types.get(kind, text)) for name, kind in kinds.items()])
    dumped = [MeasurementView.of(row).model_dump() for row in rows]
    columns = [[_stored(row[name]) for row in dumped] for name in schema.names]
    table = pyarrow.table([pyarrow.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def _kind(annotation: Any) -> Any:
    """The type of `int`, `float | None`, `list[str]`, …, without what it holds and whether it may be missing."""
    if get_origin(annotation) is list:
        return list
    return next(kind for kind in (*get_args(annotation), annotation) if kind is not NoneType)


def _stored(value: object) -> object:
    return str(value) if isinstance(value, UUID) else value
