"""The outbox of webhooks: stored with the job or the batch, due from its end, tried until delivered or given up."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    Uuid,
    func,
    text,
)

from warpfold.app.tables.schema import metadata

_NOW = func.now()

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Uuid, primary_key=True),  # the id of the job or the batch whose end it reports
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), unique=True),
    Column("batch_id", ForeignKey("batches.id", ondelete="CASCADE"), unique=True),
    Column("url", Text, nullable=False),
    Column("secret", String(128)),  # null: the owner's
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    # When to try (again), once the job or the batch has ended; during an attempt, when it counts as lost. Null: nothing
    # more to do.
    Column("due_at", DateTime(timezone=True), server_default=_NOW),
    Column("delivered_at", DateTime(timezone=True)),
    CheckConstraint("num_nonnulls(job_id, batch_id) = 1", name="one_of_both"),
)
Index("ix_webhooks_due_at", webhooks.c.due_at, postgresql_where=text("due_at is not null"))

webhook_attempts = Table(
    "webhook_attempts",
    metadata,
    Column("webhook_id", ForeignKey("webhooks.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("started_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
    Column("finished_at", DateTime(timezone=True)),  # null: under way, or its sender died
    Column("status_code", Integer),
    Column("error", Text),
)

webhook_secrets = Table(
    "webhook_secrets",
    metadata,
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("secret", String(128), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=_NOW),
)
