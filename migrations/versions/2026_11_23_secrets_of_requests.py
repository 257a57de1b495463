"""Adds to jobs the secret of the request that waits for the end of the job."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A column without a default: no row is rewritten, whatever the size of the table.
    op.add_column("jobs", sa.Column("secret", sa.Uuid()))


def downgrade() -> None:
    op.drop_column("jobs", "secret")
