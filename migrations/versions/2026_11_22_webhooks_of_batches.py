"""A webhook tells the end of a job or of a batch."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("id", sa.Uuid(), nullable=True))
    op.execute("update webhooks set id = job_id")
    op.drop_constraint(op.f("fk_webhook_attempts_job_id"), "webhook_attempts", type_="foreignkey")
    op.drop_constraint(op.f("pk_webhooks"), "webhooks", type_="primary")
    op.alter_column("webhooks", "id", existing_type=sa.Uuid(), nullable=False)
    op.alter_column("webhooks", "job_id", existing_type=sa.Uuid(), nullable=True)
    op.create_primary_key(op.f("pk_webhooks"), "webhooks", ["id"])
    op.create_unique_constraint(op.f("uq_webhooks_job_id"), "webhooks", ["job_id"])
    op.add_column("webhooks", sa.Column("batch_id", sa.Uuid(), nullable=True))
    op.create_unique_constraint(op.f("uq_webhooks_batch_id"), "webhooks", ["batch_id"])
    op.create_foreign_key(op.f("fk_webhooks_batch_id"), "webhooks", "batches", ["batch_id"], ["id"], ondelete="CASCADE")
    op.create_check_constraint(op.f("ck_webhooks_one_of_both"), "webhooks", "num_nonnulls(job_id, batch_id) = 1")
    op.alter_column("webhook_attempts", "job_id", new_column_name="webhook_id")
    op.create_foreign_key(
        op.f("fk_webhook_attempts_webhook_id"),
        "webhook_attempts",
        "webhooks",
        ["webhook_id"],
        ["id"],
        ondelete="CASCADE",
    )


def downgrade() -> None:
    op.execute("delete from webhooks where batch_id is not null")
    op.drop_constraint(op.f("fk_webhook_attempts_webhook_id"), "webhook_attempts", type_="foreignkey")
    op.alter_column("webhook_attempts", "webhook_id", new_column_name="job_id")
    op.drop_constraint(op.f("ck_webhooks_one_of_both"), "webhooks", type_="check")
    op.drop_column("webhooks", "batch_id")
    op.drop_constraint(op.f("uq_webhooks_job_id"), "webhooks", type_="unique")
    op.drop_constraint(op.f("pk_webhooks"), "webhooks", type_="primary")
    op.create_primary_key(op.f("pk_webhooks"), "webhooks", ["job_id"])
    op.drop_column("webhooks", "id")
    op.create_foreign_key(
        op.f("fk_webhook_attempts_job_id"), "webhook_attempts", "webhooks", ["job_id"], ["job_id"], ondelete="CASCADE"
    )
