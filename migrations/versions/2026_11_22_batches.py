"""Batches: many jobs by one request."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0014"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "batches",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(length=128), server_default="", nullable=False),
        sa.Column("tags", postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("succeeded", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cancelled", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_batches_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        sa.UniqueConstraint("seq", name=op.f("uq_batches_seq")),
    )
    op.create_index("ix_batches_owner_id_seq", "batches", ["owner_id", "seq"], unique=False)
    op.create_index(
        "ix_batches_unsettled", "batches", ["seq"], unique=False, postgresql_where=sa.text("settled_at is null")
    )
    op.create_index(
        "ix_batches_finished_at",
        "batches",
        ["finished_at"],
        unique=False,
        postgresql_where=sa.text("finished_at is not null"),
    )
    # Columns without a default: no row is rewritten, whatever the size of the table.
    op.add_column("jobs", sa.Column("batch_id", sa.Uuid(), nullable=True))
    op.add_column("jobs", sa.Column("batch_index", sa.Integer(), nullable=True))
    op.create_foreign_key(op.f("fk_jobs_batch_id"), "jobs", "batches", ["batch_id"], ["id"])
    op.create_index(
        "ix_jobs_batch_id_seq",
        "jobs",
        ["batch_id", "seq"],
        unique=False,
        postgresql_include=["status", "started_at", "finished_at"],
        postgresql_where=sa.text("batch_id is not null"),
    )
    op.alter_column("idempotency_keys", "job_id", existing_type=sa.Uuid(), nullable=True)
    op.add_column("idempotency_keys", sa.Column("batch_id", sa.Uuid(), nullable=True))
    op.create_foreign_key(
        op.f("fk_idempotency_keys_batch_id"), "idempotency_keys", "batches", ["batch_id"], ["id"], ondelete="CASCADE"
    )
    op.create_index(op.f("ix_idempotency_keys_batch_id"), "idempotency_keys", ["batch_id"], unique=False)
    op.create_check_constraint(
        op.f("ck_idempotency_keys_one_of_both"), "idempotency_keys", "num_nonnulls(job_id, batch_id) = 1"
    )


def downgrade() -> None:
    op.drop_constraint(op.f("ck_idempotency_keys_one_of_both"), "idempotency_keys", type_="check")
    op.drop_index(op.f("ix_idempotency_keys_batch_id"), table_name="idempotency_keys")
    op.execute("delete from idempotency_keys where batch_id is not null")
    op.drop_constraint(op.f("fk_idempotency_keys_batch_id"), "idempotency_keys", type_="foreignkey")
    op.drop_column("idempotency_keys", "batch_id")
    op.alter_column("idempotency_keys", "job_id", existing_type=sa.Uuid(), nullable=False)
    op.drop_index("ix_jobs_batch_id_seq", table_name="jobs")
    op.drop_constraint(op.f("fk_jobs_batch_id"), "jobs", type_="foreignkey")
    op.drop_column("jobs", "batch_index")
    op.drop_column("jobs", "batch_id")  # the jobs stay, each by itself
    op.drop_table("batches")
