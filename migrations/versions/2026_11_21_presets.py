"""Adds jobs that consist of other jobs: presets and their children."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Columns without a default: no row is rewritten, whatever the size of the table.
    op.add_column("jobs", sa.Column("parent_id", sa.Uuid(), nullable=True))
    op.add_column("jobs", sa.Column("name", sa.String(length=128), nullable=True))
    op.create_foreign_key(op.f("fk_jobs_parent_id"), "jobs", "jobs", ["parent_id"], ["id"], ondelete="CASCADE")
    op.create_index(
        "ix_jobs_parent_id", "jobs", ["parent_id"], unique=False, postgresql_where=sa.text("parent_id is not null")
    )
    op.create_index(
        "ix_jobs_families",
        "jobs",
        ["id"],
        unique=False,
        postgresql_where=sa.text("needs = 'none' and status in ('queued', 'running')"),
    )
    op.drop_constraint(op.f("ck_jobs_lease_while_running"), "jobs", type_="check")
    op.create_check_constraint(
        op.f("ck_jobs_lease_while_running"),
        "jobs",
        "(status = 'running' and needs <> 'none') = (lease_expires_at is not null)",
    )


def downgrade() -> None:
    op.execute("delete from jobs where needs = 'none'")  # and with them their children
    op.drop_constraint(op.f("ck_jobs_lease_while_running"), "jobs", type_="check")
    op.create_check_constraint(
        op.f("ck_jobs_lease_while_running"), "jobs", "(status = 'running') = (lease_expires_at is not null)"
    )
    op.drop_index("ix_jobs_families", table_name="jobs")
    op.drop_index("ix_jobs_parent_id", table_name="jobs")
    op.drop_constraint(op.f("fk_jobs_parent_id"), "jobs", type_="foreignkey")
    op.drop_column("jobs", "name")
    op.drop_column("jobs", "parent_id")
