"""Measurements as the api answers with them: as JSON, and with the same columns and order as CSV and Parquet."""

import io
from collections.abc import Sequence
from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from warpfold.app.csv_text import CsvText, cell
from warpfold.app.http.errors import Unavailable
from warpfold.app.results.repository import Measured
from warpfold.contract.measurement import PointDetails, PointHead, PointShape, PointSpeed, arrow_schema

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"


class _Origin(BaseModel):
    id: int
    job_id: UUID
    created_at: datetime


def _always_there(schema: JsonDict) -> None:
    """A point that is shown has all of its fields, even those that a worker may leave out."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    for field in properties.values():
        assert isinstance(field, dict)
        field.pop("default", None)
    schema["required"] = list(properties)


class MeasurementView(PointShape, PointDetails, PointSpeed, PointHead, _Origin):
    """A measured point of a reduction, a benchmark or a study. Fields that only benchmarks have are null for other
    kinds of job."""

    model_config = ConfigDict(json_schema_extra=_always_there)

    @classmethod
    def of(cls, row: Measured) -> Self:
        return cls(
            **vars(row),
            gb_per_s=row.gb_per_s,
            percent_of_ceiling=row.percent_of_ceiling,
            percent_of_peak=row.percent_of_peak,
        )


class MeasurementPage(BaseModel):
    """A page of measured points, newest first."""

    items: list[MeasurementView]
    next_cursor: str | None = Field(description="The `cursor` of the next page; null on the last page.")


def csv_of(rows: Sequence[Measured], begun: bool = False) -> bytes:
    """CSV (RFC 4180), of a text that has not `begun` with a line of names. An unknown value is an empty cell; spaces
    separate several flags or reasons; floats have the fewest digits that read back as the same number."""
    text = CsvText(MeasurementView.model_fields, begun=begun)
    text.add([_cell(value) for value in MeasurementView.of(row).model_dump(mode="json").values()] for row in rows)
    return text.taken()


def _cell(value: object) -> object:
    return cell(" ".join(value) if isinstance(value, list) else value)


def json_of(rows: Sequence[Measured]) -> bytes:
    """The views of rows as JSON, with commas between."""
    return ",".join(MeasurementView.of(row).model_dump_json() for row in rows).encode()


def check_parquet() -> None:
    """Raise Unavailable if pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise Unavailable("This server cannot write Parquet: pyarrow is not installed.") from error


def parquet_of(rows: Sequence[Measured]) -> bytes:
    """Parquet with typed columns, even without rows."""
    import pyarrow
    from pyarrow import parquet

    schema = arrow_schema(MeasurementView)
    dumped = [MeasurementView.of(row).model_dump() for row in rows]
    columns = [[_stored(row[name]) for row in dumped] for name in schema.names]
    table = pyarrow.table([pyarrow.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def _stored(value: object) -> object:
    return str(value) if isinstance(value, UUID) else value
