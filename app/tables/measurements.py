"""The table of measurements: one row a measured point, across all jobs. Its columns are the fields of
`contract.measurement.Measurement`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    String,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import TypeEngine

from warpfold.app.tables.schema import metadata
from warpfold.contract.measurement import FIELDS, MeasuredField

_TYPES: Mapping[type, type[TypeEngine[Any]]] = MappingProxyType({int: Integer, float: Double, bool: Boolean, str: Text})


def _column(field: MeasuredField) -> Column[Any]:
    default = field.default
    if field.type is list:
        assert default == [], f"{field.name} has another default than no texts"
        return Column(field.name, ARRAY(String(field.stored.width)), nullable=False, server_default=text("'{}'"))
    kind: TypeEngine[Any] = _TYPES[field.type]()
    if field.stored.width is not None:
        kind = String(field.stored.width)
    elif field.stored.big:
        kind = BigInteger()
    return Column(field.name, kind, nullable=field.nullable, server_default=default)


measurements = Table(
    "measurements",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    *map(_column, FIELDS),
)
Index("ix_measurements_case", measurements.c.op, measurements.c.dtype, measurements.c.strategy, measurements.c.n)
