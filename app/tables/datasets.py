"""The table of uploaded arrays: who holds which. The arrays themselves are files (`app.datasets.store`)."""

from sqlalchemy import JSON, BigInteger, Column, DateTime, ForeignKey, Identity, Index, String, Table, func

from warpfold.app.tables.schema import metadata

_NOW = func.now()

datasets = Table(
    "datasets",
    metadata,
    Column("id", String(64), primary_key=True),  # SHA-256 of the file: who uploads the same holds the same
    Column("owner_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", BigInteger, Identity(), nullable=False, unique=True),  # pages are cut by it
    Column("name", String(128), nullable=False, server_default=""),
    Column("dtype", String(16), nullable=False),
    Column("shape", JSON, nullable=False),
    Column("bytes", BigInteger, nullable=False),  # of the file
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    Column("last_used_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
)
Index("ix_datasets_owner_id_seq", datasets.c.owner_id, datasets.c.seq)
Index("ix_datasets_last_used_at", datasets.c.last_used_at)
