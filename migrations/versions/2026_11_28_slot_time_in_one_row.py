"""The time for which users' jobs hold slots is one row a kind of slot. The count begins anew."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("slot_time")
    op.create_table(
        "slot_time",
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("owners", sa.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("used_s", sa.ARRAY(sa.Double()), nullable=False),
        sa.Column("counted_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("backend", name=op.f("pk_slot_time")),
    )


def downgrade() -> None:
    op.drop_table("slot_time")
    op.create_table(
        "slot_time",
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("used_s", sa.Double(), nullable=False),
        sa.Column("counted_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_slot_time_owner_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("backend", "owner_id", name=op.f("pk_slot_time")),
    )
