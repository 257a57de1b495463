"""Results that are too large to stand in a job are stored in files."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "artefacts",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_artefacts")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_artefacts_job_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_artefacts_owner_id"), ondelete="CASCADE"),
    )
    op.create_index("ix_artefacts_owner_id", "artefacts", ["owner_id"])
    op.create_index("ix_artefacts_created_at", "artefacts", ["created_at"])


def downgrade() -> None:
    op.drop_table("artefacts")
