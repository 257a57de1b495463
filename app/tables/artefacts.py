"""The table of stored results: whose they are and how large. The results themselves are files
(`app.artefacts.store`)."""

from sqlalchemy import BigInteger, Column, DateTime, ForeignKey, Index, Integer, Table, Uuid, func

from warpfold.app.tables.schema import metadata

artefacts = Table(
    "artefacts",
    metadata,
    Column("job_id", Uuid, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, nullable=False),  # with the job's id it names the folder of the files
    Column("owner_id", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("bytes", BigInteger, nullable=False),  # the size of all files
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
Index("ix_artefacts_owner_id", artefacts.c.owner_id)
Index("ix_artefacts_created_at", artefacts.c.created_at)
