"""Measurements as CSV and Parquet: one row a point, the columns of `MeasurementView` in its order."""

import csv
import io
from collections.abc import Sequence
from typing import Any, get_args

from app.errors import Unavailable
from app.results.repository import Measured
from app.results.views import MeasurementView

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
    types = {
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
        list: pyarrow.list_(pyarrow.string()),
    }
    schema = pyarrow.schema(
        [
            ("created_at", pyarrow.timestamp("us", tz="UTC")) if name == "created_at" else (name, _type(kind, types))
            for name, kind in ((name, field.annotation) for name, field in MeasurementView.model_fields.items())
        ]
    )
    dumped = [MeasurementView.of(row).model_dump() for row in rows]
    columns = [[_stored(row[name]) for row in dumped] for name in schema.names]
    table = pyarrow.table([pyarrow.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def _type(annotation: Any, types: dict[type, Any]) -> Any:
    """The Arrow type of `int`, `float | None`, `list[str]`, …; text for all that is not a number or a list."""
    kinds = [kind for kind in (get_args(annotation) or (annotation,)) if kind is not type(None)]
    if getattr(annotation, "__origin__", None) is list:
        return types[list]
    return types.get(kinds[0], types[list].value_type)


def _stored(value: Any) -> Any:
    return (
        value
        if value is None or isinstance(value, int | float | str | list) or hasattr(value, "tzinfo")
        else str(value)
    )
