"""A census of the queue and the room of each user: the api counts no queue for one answer any more."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "census_counts",
        sa.Column("topic", sa.String(length=16), nullable=False),
        sa.Column("label", sa.String(length=64), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("oldest", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("topic", "label", name=op.f("pk_census_counts")),
    )
    op.create_table(
        "queue_marks",
        sa.Column("place", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("ahead", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_queue_marks")),
    )
    op.create_index("ix_queue_marks_rank_seq", "queue_marks", ["rank", "seq"], unique=False)
    op.create_table(
        "queue_room",
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("limit", sa.BigInteger(), nullable=False),
        sa.Column("room", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_queue_room_owner_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("owner_id", name=op.f("pk_queue_room")),
    )


def downgrade() -> None:
    op.drop_table("queue_room")
    op.drop_table("queue_marks")
    op.drop_table("census_counts")
