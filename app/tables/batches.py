"""The table of batches: jobs that one request brought. The status of a batch follows from the rows of its jobs."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    String,
    Table,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from warpfold.app.tables.schema import metadata

batches = Table(
    "batches",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("seq", BigInteger, Identity(), nullable=False, unique=True),  # pages are cut by it
    Column("owner_id", ForeignKey("users.id"), nullable=False),
    Column("shared", Boolean),  # whether everyone sees it; null: it is older than sharing
    Column("name", String(128), nullable=False, server_default=""),
    Column("tags", JSONB, nullable=False, server_default=text("'{}'")),  # the tags of all of its jobs
    Column("count", Integer, nullable=False),  # jobs; those of a preset are the preset's
    # The lowest and the highest `seq` of its jobs. Lists of jobs show the batch where its first job would stand.
    Column("first_seq", BigInteger),
    Column("last_seq", BigInteger),
    Column("cancel_requested_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # Null until the dispatcher finds that all of its jobs have ended. From then on the counts stand here, and nobody
    # counts the jobs again, of which retention may have removed some.
    Column("settled_at", DateTime(timezone=True)),
    Column("succeeded", Integer, nullable=False, server_default=text("0")),
    Column("failed", Integer, nullable=False, server_default=text("0")),
    Column("cancelled", Integer, nullable=False, server_default=text("0")),
    Column("started_at", DateTime(timezone=True)),
    Column("finished_at", DateTime(timezone=True)),
)
Index("ix_batches_owner_id_seq", batches.c.owner_id, batches.c.seq)
Index("ix_batches_first_seq", batches.c.first_seq)
Index("ix_batches_owner_id_first_seq", batches.c.owner_id, batches.c.first_seq)
Index("ix_batches_unsettled", batches.c.seq, postgresql_where=text("settled_at is null"))
Index("ix_batches_finished_at", batches.c.finished_at, postgresql_where=text("finished_at is not null"))
