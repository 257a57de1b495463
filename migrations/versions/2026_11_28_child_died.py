"""Whether the child of a job's last attempt died: then a process of its own looks at the job's files first."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A constant default: no row is rewritten, whatever the size of the table.
    op.add_column("jobs", sa.Column("child_died", sa.Boolean(), server_default=sa.text("false"), nullable=False))


def downgrade() -> None:
    op.drop_column("jobs", "child_died")
