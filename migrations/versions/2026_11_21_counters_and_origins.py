"""Adds counters of ended jobs, and to jobs the request and the trace that they came with."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "counters",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("labels", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", "labels", name=op.f("pk_counters")),
    )
    op.create_table(
        "uncounted_jobs",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_uncounted_jobs")),
    )
    op.add_column("jobs", sa.Column("request_id", sa.String(length=64), nullable=True))
    op.add_column("jobs", sa.Column("traceparent", sa.String(length=64), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "traceparent")
    op.drop_column("jobs", "request_id")
    op.drop_table("uncounted_jobs")
    op.drop_table("counters")
