"""The census keeps lanes of jobs that are alike, from which turns are told, in place of marks by rank and age."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "queue_lanes",
        sa.Column("owner_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("rank", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("needs", sa.String(length=16), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("small", sa.Boolean(), nullable=False),
        sa.Column("lies", sa.String(length=16), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.Double(), nullable=False),
        sa.Column("unsized", sa.BigInteger(), nullable=False),
        sa.Column("oldest", sa.BigInteger(), nullable=False),
        sa.Column("newest", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "rank", "needs", "kind", "small", "lies", name=op.f("pk_queue_lanes")),
    )
    op.drop_table("queue_marks")
    op.execute("delete from census_counts where topic = 'owner'")
    op.drop_column("census_counts", "oldest")


def downgrade() -> None:
    op.add_column("census_counts", sa.Column("oldest", sa.BigInteger(), nullable=True))
    op.create_table(
        "queue_marks",
        sa.Column("place", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("ahead", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_queue_marks")),
    )
    op.create_index("ix_queue_marks_rank_seq", "queue_marks", ["rank", "seq"], unique=False)
    op.drop_table("queue_lanes")
