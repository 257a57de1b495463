"""The audit log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("actor", sa.String(length=64), nullable=True),
        sa.Column("key_id", sa.BigInteger(), nullable=True),
        sa.Column("address", sa.String(length=64), server_default="", nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=True),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("thing", sa.String(length=128), server_default="", nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=True),
        sa.Column("details", postgresql.JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )
    op.create_index(op.f("ix_audit_log_at"), "audit_log", ["at"])
    for column in ("actor", "action", "thing"):
        op.create_index(f"ix_audit_log_{column}_id", "audit_log", [column, "id"])


def downgrade() -> None:
    op.drop_table("audit_log")
