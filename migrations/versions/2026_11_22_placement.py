"""Slots tell their rates, and jobs what they have to move, so that a job goes where it ends first."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Columns without a value: no row is rewritten, whatever the size of the tables.
    op.add_column("workers", sa.Column("rates", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("jobs", sa.Column("work", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("jobs", sa.Column("placement", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("jobs", sa.Column("expected_s", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "expected_s")
    op.drop_column("jobs", "placement")
    op.drop_column("jobs", "work")
    op.drop_column("workers", "rates")
