"""The tables of what jobs give, and of what the queue counts, as they were on 2026-11-23 (decision 132)."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0034"
down_revision = "0000"
branch_labels = None
depends_on = None

_NUMBERS = (
    "min_ms",
    "p95_ms",
    "rse",
    "low_ms",
    "high_ms",
    "host_ms",
    "issue_ms",
    "replay_ms",
    "ceiling_gbps",
    "peak_gbps",
    "clock_before_mhz",
    "clock_after_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "power_w",
    "others",
    "relative_error",
)
"""Figures of a point of a benchmark."""


def upgrade() -> None:
    op.create_table(
        "measurements",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("op", sa.String(length=32), nullable=False),
        sa.Column("dtype", sa.String(length=16), nullable=False),
        sa.Column("strategy", sa.String(length=64), nullable=False),
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("device", sa.String(length=128), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("load_ms", sa.Double()),
        sa.Column("kernel_ms", sa.Double()),
        sa.Column("correctly_rounded", sa.Boolean()),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("device_uuid", sa.String(length=64)),
        sa.Column("driver", sa.String(length=32)),
        sa.Column("host", sa.String(length=64)),
        sa.Column("distribution", sa.String(length=32)),
        sa.Column("cache", sa.String(length=8)),
        sa.Column("clock", sa.String(length=64)),
        *(sa.Column(name, sa.Double()) for name in _NUMBERS),
        sa.Column("launches", sa.Integer()),
        sa.Column("distinct_values", sa.Integer()),
        sa.Column("reason", sa.Text()),
        sa.Column("value", sa.Text()),
        sa.Column("outcome", sa.String(length=16), server_default="measured", nullable=False),
        sa.Column("throttle", sa.ARRAY(sa.String(length=32)), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("flags", sa.ARRAY(sa.String(length=16)), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("prepare_ms", sa.Double()),
        sa.Column("rows", sa.BigInteger()),
        sa.Column("columns", sa.BigInteger()),
        sa.Column("segments", sa.BigInteger()),
        sa.Column("groups", sa.BigInteger()),
        sa.Column("axis", sa.Integer()),
        sa.Column("key_order", sa.String(length=8)),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_measurements_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measurements")),
    )
    op.create_index("ix_measurements_case", "measurements", ["op", "dtype", "strategy", "n"])
    op.create_index(op.f("ix_measurements_job_id"), "measurements", ["job_id"])
    op.create_table(
        "artefacts",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_artefacts_job_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_artefacts_owner_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_artefacts")),
    )
    op.create_index("ix_artefacts_created_at", "artefacts", ["created_at"])
    op.create_index("ix_artefacts_owner_id", "artefacts", ["owner_id"])
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("name", sa.String(length=128), server_default="", nullable=False),
        sa.Column("dtype", sa.String(length=16), nullable=False),
        sa.Column("shape", sa.JSON(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_datasets_owner_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", "owner_id", name=op.f("pk_datasets")),
        sa.UniqueConstraint("seq", name=op.f("uq_datasets_seq")),
    )
    op.create_index("ix_datasets_last_used_at", "datasets", ["last_used_at"])
    op.create_index("ix_datasets_owner_id_seq", "datasets", ["owner_id", "seq"])
    op.create_table(
        "webhooks",
        sa.Column("job_id", sa.Uuid()),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.String(length=128)),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=sa.text("now()")),
        sa.Column("delivered_at", sa.DateTime(timezone=True)),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid()),
        sa.CheckConstraint("num_nonnulls(job_id, batch_id) = 1", name=op.f("ck_webhooks_one_of_both")),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_webhooks_batch_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_webhooks_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
        sa.UniqueConstraint("batch_id", name=op.f("uq_webhooks_batch_id")),
        sa.UniqueConstraint("job_id", name=op.f("uq_webhooks_job_id")),
    )
    op.create_index("ix_webhooks_due_at", "webhooks", ["due_at"], postgresql_where=sa.text("due_at is not null"))
    op.create_table(
        "webhook_attempts",
        sa.Column("webhook_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("status_code", sa.Integer()),
        sa.Column("error", sa.Text()),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_webhook_attempts_webhook_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("webhook_id", "number", name=op.f("pk_webhook_attempts")),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("labels", postgresql.JSONB(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", "labels", name=op.f("pk_counters")),
    )
    op.create_table(
        "uncounted_jobs",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_uncounted_jobs")),
    )
    op.create_table(
        "census_counts",
        sa.Column("topic", sa.String(length=16), nullable=False),
        sa.Column("label", sa.String(length=64), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("oldest", sa.BigInteger()),
        sa.PrimaryKeyConstraint("topic", "label", name=op.f("pk_census_counts")),
    )
    op.create_table(
        "queue_marks",
        sa.Column("place", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("ahead", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_queue_marks")),
    )
    op.create_index("ix_queue_marks_rank_seq", "queue_marks", ["rank", "seq"])
    op.create_table(
        "turns",
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("backend", "rank", name=op.f("pk_turns")),
    )
    op.create_table(
        "lead",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(length=64)),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("session_started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("renewals", sa.BigInteger(), nullable=False),
        sa.Column("renewed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lasts_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_lead")),
    )


def downgrade() -> None:
    for table in (
        "lead",
        "turns",
        "queue_marks",
        "census_counts",
        "uncounted_jobs",
        "counters",
        "webhook_attempts",
        "webhooks",
        "datasets",
        "artefacts",
        "measurements",
    ):
        op.drop_table(table)
