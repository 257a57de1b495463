"""Adds to measurements the shape that a benchmark reduced to many values."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0032"
branch_labels = None
depends_on = None

_COUNTS = ("rows", "columns", "segments", "groups")


def upgrade() -> None:
    # Columns without a default: no row is rewritten, whatever the size of the table.
    for name in _COUNTS:
        op.add_column("measurements", sa.Column(name, sa.BigInteger()))
    op.add_column("measurements", sa.Column("axis", sa.Integer()))
    op.add_column("measurements", sa.Column("key_order", sa.String(length=8)))


def downgrade() -> None:
    for name in (*_COUNTS, "axis", "key_order"):
        op.drop_column("measurements", name)
