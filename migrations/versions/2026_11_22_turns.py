"""Lets users take turns: it adds the rank of waiting jobs, the last turn of each user, and indexes to find the next."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A constant default: no row is rewritten, whatever the size of the table.
    op.add_column("jobs", sa.Column("rank", sa.SmallInteger(), server_default=sa.text("1"), nullable=False))
    op.execute("update jobs set rank = priority where status in ('queued', 'running') and priority <> 1")
    op.drop_index("ix_jobs_queue", table_name="jobs")
    op.create_index(
        "ix_jobs_queue",
        "jobs",
        [sa.literal_column("rank DESC"), "seq"],
        unique=False,
        postgresql_where=sa.text("status = 'queued' and needs <> 'none'"),
    )
    op.create_index(
        "ix_jobs_waiting",
        "jobs",
        ["rank", "needs", "owner_id", "seq"],
        unique=False,
        postgresql_where=sa.text("status = 'queued' and dispatched_at is null and needs <> 'none'"),
    )
    op.create_index(
        "ix_jobs_in_hand",
        "jobs",
        ["slot"],
        unique=False,
        postgresql_where=sa.text("slot is not null and finished_at is null"),
    )
    op.create_index(
        "ix_jobs_high",
        "jobs",
        ["owner_id", "created_at"],
        unique=False,
        postgresql_where=sa.text("priority = 2 and rank = 2"),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"], unique=False)
    op.add_column("quotas", sa.Column("high_per_hour", sa.Integer(), nullable=True))
    op.create_check_constraint(op.f("ck_quotas_high_per_hour"), "quotas", "high_per_hour >= 0")
    op.create_table(
        "turns",
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("backend", "rank", name=op.f("pk_turns")),
    )


def downgrade() -> None:
    op.drop_table("turns")
    op.drop_constraint(op.f("ck_quotas_high_per_hour"), "quotas", type_="check")
    op.drop_column("quotas", "high_per_hour")
    op.drop_index("ix_idempotency_keys_created_at", table_name="idempotency_keys")
    op.drop_index("ix_jobs_high", table_name="jobs")
    op.drop_index("ix_jobs_in_hand", table_name="jobs")
    op.drop_index("ix_jobs_waiting", table_name="jobs")
    op.drop_index("ix_jobs_queue", table_name="jobs")
    op.create_index(
        "ix_jobs_queue",
        "jobs",
        [sa.literal_column("priority DESC"), "seq"],
        unique=False,
        postgresql_where=sa.text("status = 'queued'"),
    )
    op.drop_column("jobs", "rank")
