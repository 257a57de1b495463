"""Measurements of reductions say how long kernels were compiled and loaded for them."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Nobody knows it of the rows that are there: their kernel_ms may hold it.
    op.add_column("measurements", sa.Column("prepare_ms", sa.Double()))


def downgrade() -> None:
    op.drop_column("measurements", "prepare_ms")
