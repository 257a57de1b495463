"""Indexes for the lists of users who do not see all jobs: what everyone sees, old jobs, and what names a user."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

_NAMING = ("job_shares", "batch_shares", "dataset_shares")


def upgrade() -> None:
    op.create_index("ix_jobs_shared", "jobs", ["seq"], unique=False, postgresql_where=sa.text("shared"))
    op.create_index("ix_jobs_old", "jobs", ["seq"], unique=False, postgresql_where=sa.text("shared is null"))
    for table in _NAMING:
        op.create_index(op.f(f"ix_{table}_user_id"), table, ["user_id"], unique=False)


def downgrade() -> None:
    for table in _NAMING:
        op.drop_index(op.f(f"ix_{table}_user_id"), table_name=table)
    op.drop_index("ix_jobs_old", table_name="jobs")
    op.drop_index("ix_jobs_shared", table_name="jobs")
