"""Jobs are known to be small when they are accepted, so that a slot may hold many of them."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A constant default: no row is rewritten, whatever the size of the table. What waits already runs as before.
    op.add_column("jobs", sa.Column("small", sa.Boolean(), server_default=sa.text("false"), nullable=False))


def downgrade() -> None:
    op.drop_column("jobs", "small")
