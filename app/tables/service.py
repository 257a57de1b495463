"""Tables about the service itself: its counters, and the one row that says which dispatcher leads."""

from sqlalchemy import BigInteger, Column, DateTime, Double, Integer, String, Table, Uuid
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


lead = Table(
    "lead",
    metadata,
    Column("name", String(32), primary_key=True),  # dispatcher
    Column("epoch", BigInteger, nullable=False),  # one more with every change of the leader
    Column("holder", String(64)),  # the application name of the leader's sessions; null: the leader gave the lead back
    Column("pid", Integer, nullable=False),  # the process of the renewing session, in Postgres
    Column("session_started_at", DateTime(timezone=True), nullable=False),  # tells it from a later one of that pid
    Column("renewals", BigInteger, nullable=False),  # the others watch it: it needs no clock
    Column("renewed_at", DateTime(timezone=True), nullable=False),
    Column("lasts_s", Double, nullable=False),
)
