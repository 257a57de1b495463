"""The tables of named users who may see a private dataset, job or batch. Whether a thing is shared with everyone stands
in its own row, in the column `shared`, which is null for what was stored before there was the column."""

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    LargeBinary,
    String,
    Table,
    func,
)

from warpfold.app.tables.schema import metadata


def _user() -> Column[int]:
    return Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)


job_shares = Table(
    "job_shares", metadata, Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True), _user()
)
batch_shares = Table(
    "batch_shares",
    metadata,
    Column("batch_id", ForeignKey("batches.id", ondelete="CASCADE"), primary_key=True),
    _user(),
)
dataset_shares = Table(
    "dataset_shares",
    metadata,
    Column("dataset_id", String(64), primary_key=True),
    Column("owner_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    _user(),
    ForeignKeyConstraint(["dataset_id", "owner_id"], ["datasets.id", "datasets.owner_id"], ondelete="CASCADE"),
)

# Whoever has the secret sees the report of the job.
job_links = Table(
    "job_links",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("hash", LargeBinary(32), nullable=False, unique=True),
    Column("made_by", String(64), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True), nullable=False),
)
