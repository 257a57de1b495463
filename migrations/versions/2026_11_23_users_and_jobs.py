"""The tables of users, workers, jobs and batches, as they were on 2026-11-23 (decision 132)."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0000"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("role in ('admin', 'user', 'viewer')", name=op.f("ck_users_role")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("label", sa.String(length=64), server_default="", nullable=False),
        sa.Column("hint", sa.String(length=16), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_tokens_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
    )
    op.create_index(op.f("ix_tokens_user_id"), "tokens", ["user_id"])
    op.create_table(
        "sessions",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("token_id", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name=op.f("fk_sessions_token_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_sessions")),
    )
    op.create_index(op.f("ix_sessions_token_id"), "sessions", ["token_id"])
    op.create_table(
        "webhook_secrets",
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("secret", sa.String(length=128), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_webhook_secrets_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_webhook_secrets")),
    )
    op.create_table(
        "quotas",
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("running", sa.Integer()),
        sa.Column("queued", sa.Integer()),
        sa.Column("gpu_seconds_per_day", sa.Double()),
        sa.Column("high_per_hour", sa.Integer()),
        sa.CheckConstraint("gpu_seconds_per_day >= 0", name=op.f("ck_quotas_gpu_seconds_per_day")),
        sa.CheckConstraint("high_per_hour >= 0", name=op.f("ck_quotas_high_per_hour")),
        sa.CheckConstraint("queued >= 0", name=op.f("ck_quotas_queued")),
        sa.CheckConstraint("running >= 0", name=op.f("ck_quotas_running")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_quotas_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_quotas")),
    )
    op.create_table(
        "quota_holds",
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("quota", sa.String(length=32), nullable=False),
        sa.Column("limit", sa.Double(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_quota_holds_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "quota", name=op.f("pk_quota_holds")),
    )
    op.create_table(
        "queue_room",
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("limit", sa.BigInteger(), nullable=False),
        sa.Column("room", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_queue_room_owner_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("owner_id", name=op.f("pk_queue_room")),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("slot", sa.String(length=32), nullable=False),
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("host", sa.String(length=128), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("job_id", sa.Uuid()),
        sa.Column("device", sa.JSON()),
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reading", sa.JSON()),
        sa.Column("draining", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("rates", sa.JSON()),
        sa.CheckConstraint("state in ('starting', 'idle', 'running', 'stopped')", name=op.f("ck_workers_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )
    op.create_table(
        "batches",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(length=128), server_default="", nullable=False),
        sa.Column("tags", postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True)),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True)),
        sa.Column("succeeded", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cancelled", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("first_seq", sa.BigInteger()),
        sa.Column("last_seq", sa.BigInteger()),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_batches_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        sa.UniqueConstraint("seq", name=op.f("uq_batches_seq")),
    )
    op.create_index(
        "ix_batches_finished_at", "batches", ["finished_at"], postgresql_where=sa.text("finished_at is not null")
    )
    op.create_index("ix_batches_first_seq", "batches", ["first_seq"])
    op.create_index("ix_batches_owner_id_first_seq", "batches", ["owner_id", "first_seq"])
    op.create_index("ix_batches_owner_id_seq", "batches", ["owner_id", "seq"])
    op.create_index("ix_batches_unsettled", "batches", ["seq"], postgresql_where=sa.text("settled_at is null"))
    op.create_table(
        "jobs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("status", sa.String(length=16), server_default="queued", nullable=False),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column("needs", sa.String(length=16), nullable=False),
        sa.Column("timeout_s", sa.Double(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("spec_brief", sa.JSON()),
        sa.Column("tags", postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("losses", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("slot", sa.String(length=128)),
        sa.Column("dispatched_at", sa.DateTime(timezone=True)),
        sa.Column("worker", sa.String(length=128)),
        sa.Column("lease_token", sa.Uuid()),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True)),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True)),
        sa.Column("progress_done", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("progress_total", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("progress_unit", sa.String(length=32), server_default="", nullable=False),
        sa.Column("reason", sa.String(length=32)),
        sa.Column("error", sa.Text()),
        sa.Column("result", sa.JSON()),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("parent_id", sa.Uuid()),
        sa.Column("name", sa.String(length=128)),
        sa.Column("request_id", sa.String(length=64)),
        sa.Column("traceparent", sa.String(length=64)),
        sa.Column("rank", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("batch_id", sa.Uuid()),
        sa.Column("batch_index", sa.Integer()),
        sa.Column("small", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("work", sa.JSON()),
        sa.Column("placement", sa.JSON()),
        sa.Column("expected_s", sa.Double()),
        sa.Column("secret", sa.Uuid()),
        sa.CheckConstraint(
            "(status = 'running' and needs <> 'none') = (lease_expires_at is not null)",
            name=op.f("ck_jobs_lease_while_running"),
        ),
        sa.CheckConstraint(
            "(status in ('succeeded', 'failed', 'cancelled')) = (finished_at is not null)",
            name=op.f("ck_jobs_finished"),
        ),
        sa.CheckConstraint(
            "status in ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name=op.f("ck_jobs_status")
        ),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_jobs_batch_id")),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_jobs_owner_id")),
        sa.ForeignKeyConstraint(["parent_id"], ["jobs.id"], name=op.f("fk_jobs_parent_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("seq", name=op.f("uq_jobs_seq")),
    )
    op.create_index("ix_jobs_alone", "jobs", ["seq"], postgresql_where=sa.text("batch_id is null"))
    op.create_index(
        "ix_jobs_batch_id_seq",
        "jobs",
        ["batch_id", "seq"],
        postgresql_where=sa.text("batch_id is not null"),
        postgresql_include=["status", "started_at", "finished_at"],
    )
    op.create_index("ix_jobs_created_at", "jobs", ["created_at", "seq"])
    op.create_index(
        "ix_jobs_families",
        "jobs",
        ["id"],
        postgresql_where=sa.text("needs = 'none' and status in ('queued', 'running')"),
    )
    op.create_index("ix_jobs_finished_at", "jobs", ["finished_at"], postgresql_where=sa.text("finished_at is not null"))
    op.create_index(
        "ix_jobs_high", "jobs", ["owner_id", "created_at"], postgresql_where=sa.text("priority = 2 and rank = 2")
    )
    op.create_index(
        "ix_jobs_in_hand", "jobs", ["slot"], postgresql_where=sa.text("slot is not null and finished_at is null")
    )
    op.create_index("ix_jobs_list", "jobs", ["status", "kind", "seq"])
    op.create_index(
        "ix_jobs_owner_active", "jobs", ["owner_id"], postgresql_where=sa.text("status in ('queued', 'running')")
    )
    op.create_index("ix_jobs_owner_list", "jobs", ["owner_id", "status", "kind", "seq"])
    op.create_index("ix_jobs_parent_id", "jobs", ["parent_id"], postgresql_where=sa.text("parent_id is not null"))
    op.create_index(
        "ix_jobs_queue",
        "jobs",
        [sa.literal_column("rank DESC"), "seq"],
        postgresql_where=sa.text("status = 'queued' and needs <> 'none'"),
    )
    op.create_index("ix_jobs_running", "jobs", ["lease_expires_at"], postgresql_where=sa.text("status = 'running'"))
    op.create_index(
        "ix_jobs_waiting",
        "jobs",
        ["rank", "needs", "owner_id", "seq"],
        postgresql_where=sa.text("status = 'queued' and dispatched_at is null and needs <> 'none'"),
    )
    # Compressing the digits of 1,000 values takes three times as long as writing them.
    op.execute("alter table jobs alter column spec set storage external")
    op.create_table(
        "job_tags",
        sa.Column("tag_id", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tag_id", "seq", name=op.f("pk_job_tags")),
    )
    op.create_table(
        "tag_words",
        sa.Column("word", sa.Text(collation="C"), nullable=False),
        sa.Column("tag_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("word", "tag_id", name=op.f("pk_tag_words")),
    )
    op.create_table(
        "job_events",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_events_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "seq", name=op.f("pk_job_events")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("body_hash", sa.LargeBinary(), nullable=False),
        sa.Column("job_id", sa.Uuid()),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("batch_id", sa.Uuid()),
        sa.CheckConstraint("num_nonnulls(job_id, batch_id) = 1", name=op.f("ck_idempotency_keys_one_of_both")),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["batches.id"], name=op.f("fk_idempotency_keys_batch_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_idempotency_keys_job_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_idempotency_keys_owner_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("owner_id", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(op.f("ix_idempotency_keys_batch_id"), "idempotency_keys", ["batch_id"])
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
    op.create_index(op.f("ix_idempotency_keys_job_id"), "idempotency_keys", ["job_id"])


def downgrade() -> None:
    for table in (
        "idempotency_keys",
        "job_events",
        "tag_words",
        "job_tags",
        "jobs",
        "batches",
        "workers",
        "queue_room",
        "quota_holds",
        "quotas",
        "webhook_secrets",
        "sessions",
        "tokens",
        "users",
    ):
        op.drop_table(table)
