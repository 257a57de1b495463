"""Tokens have scopes, a maker, a last use and a secret before the present one; users can be removed."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("users", sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True))
    for column in (
        sa.Column("scopes", sa.String(length=64), nullable=True),
        sa.Column("made_by", sa.String(length=64), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("rotated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("old_hash", sa.LargeBinary(length=32), nullable=True),
        sa.Column("old_until", sa.DateTime(timezone=True), nullable=True),
    ):
        op.add_column("tokens", column)
    op.create_unique_constraint(op.f("uq_tokens_old_hash"), "tokens", ["old_hash"])


def downgrade() -> None:
    op.drop_constraint(op.f("uq_tokens_old_hash"), "tokens", type_="unique")
    for name in ("old_until", "old_hash", "rotated_at", "last_used_at", "made_by", "scopes"):
        op.drop_column("tokens", name)
    op.drop_column("users", "removed_at")
