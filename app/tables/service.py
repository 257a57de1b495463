"""The tables of counters."""

from sqlalchemy import Column, Double, String, Table, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from warpfold.app.tables.schema import metadata

counters = Table(
    "counters",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("labels", JSONB, primary_key=True),
    Column("value", Double, nullable=False),
)
uncounted_jobs = Table(
    "uncounted_jobs",
    metadata,
    Column("job_id", Uuid, primary_key=True),  # ended, and not in `counters` yet
)
