"""Adds to measurements of reductions the time of compiling and loading kernels."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The time is unknown for older rows, whose kernel_ms may include it.
    op.add_column("measurements", sa.Column("prepare_ms", sa.Double()))


def downgrade() -> None:
    op.drop_column("measurements", "prepare_ms")
