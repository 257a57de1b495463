"""Adds the role of viewers, quotas of users, and slots that an admin drains."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_constraint(op.f("ck_users_role"), "users", type_="check")
    op.create_check_constraint(op.f("ck_users_role"), "users", "role in ('admin', 'user', 'viewer')")
    op.add_column("workers", sa.Column("draining", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.create_table(
        "quotas",
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("running", sa.Integer(), nullable=True),
        sa.Column("queued", sa.Integer(), nullable=True),
        sa.Column("gpu_seconds_per_day", sa.Double(), nullable=True),
        sa.CheckConstraint("gpu_seconds_per_day >= 0", name=op.f("ck_quotas_gpu_seconds_per_day")),
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
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_quota_holds_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "quota", name=op.f("pk_quota_holds")),
    )


def downgrade() -> None:
    op.drop_table("quota_holds")
    op.drop_table("quotas")
    op.drop_column("workers", "draining")
    op.drop_constraint(op.f("ck_users_role"), "users", type_="check")
    op.execute("update users set role = 'user' where role = 'viewer'")
    op.create_check_constraint(op.f("ck_users_role"), "users", "role in ('admin', 'user')")
