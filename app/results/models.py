"""The table of measurements: one row a measured point, across all jobs."""

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
    func,
)

from app.schema import metadata

measurements = Table(
    "measurements",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("kind", String(32), nullable=False),
    Column("op", String(32), nullable=False),
    Column("dtype", String(16), nullable=False),
    Column("strategy", String(64), nullable=False),
    Column("backend", String(16), nullable=False),
    Column("device", String(128), nullable=False),
    Column("n", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("samples", Integer, nullable=False),
    Column("load_ms", Double, nullable=False),
    Column("kernel_ms", Double, nullable=False),
    Column("correctly_rounded", Boolean, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
Index("ix_measurements_case", measurements.c.op, measurements.c.dtype, measurements.c.strategy, measurements.c.n)
