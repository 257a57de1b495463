"""The lead: one row, from the first dispatcher on."""

from sqlalchemy import BigInteger, Column, DateTime, Double, Integer, String, Table

from warpfold.app.tables.schema import metadata

lead = Table(
    "lead",
    metadata,
    Column("name", String(32), primary_key=True),  # dispatcher
    Column("epoch", BigInteger, nullable=False),  # one more with every change of the leader
    Column("holder", String(64)),  # the application name of the leader's sessions; null: the leader gave the lead back
    Column("pid", Integer, nullable=False),  # of the session that renews, in Postgres
    Column("session_started_at", DateTime(timezone=True), nullable=False),  # tells it from a later one of that pid
    Column("renewals", BigInteger, nullable=False),  # what the others watch: it does not depend on a clock
    Column("renewed_at", DateTime(timezone=True), nullable=False),
    Column("lasts_s", Double, nullable=False),
)
