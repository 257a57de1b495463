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
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from warpfold.app.tables.schema import metadata

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
    Column("load_ms", Double),
    Column("kernel_ms", Double),  # none of a point that was skipped or failed
    Column("correctly_rounded", Boolean),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # Where it was measured, as far as that decides what may be compared.
    Column("device_uuid", String(64)),
    Column("driver", String(32)),
    Column("host", String(64)),
    Column("prepare_ms", Double),  # of a reduction: none of the other times holds it
    # A benchmark's point (kernels.bench.Record).
    Column("distribution", String(32)),
    Column("cache", String(8)),
    Column("outcome", String(16), nullable=False, server_default="measured"),
    Column("reason", Text),
    Column("min_ms", Double),
    Column("p95_ms", Double),
    Column("rse", Double),
    Column("low_ms", Double),
    Column("high_ms", Double),
    Column("host_ms", Double),
    Column("issue_ms", Double),
    Column("replay_ms", Double),
    Column("launches", Integer),
    Column("clock", String(64)),
    Column("ceiling_gbps", Double),
    Column("peak_gbps", Double),
    Column("clock_before_mhz", Double),
    Column("clock_after_mhz", Double),
    Column("memory_clock_mhz", Double),
    Column("temperature_c", Double),
    Column("power_w", Double),
    Column("throttle", ARRAY(String(32)), nullable=False, server_default=text("'{}'")),
    Column("others", Double),
    Column("flags", ARRAY(String(16)), nullable=False, server_default=text("'{}'")),
    Column("value", Text),
    Column("relative_error", Double),
    Column("distinct_values", Integer),
)
Index("ix_measurements_case", measurements.c.op, measurements.c.dtype, measurements.c.strategy, measurements.c.n)
