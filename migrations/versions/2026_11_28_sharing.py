"""Datasets, jobs and batches are private or shared, with everyone or with named users."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

_THINGS = ("datasets", "jobs", "batches")


def upgrade() -> None:
    for table in _THINGS:
        op.add_column(table, sa.Column("shared", sa.Boolean(), nullable=True))
    for thing in ("job", "batch"):
        named, things = f"{thing}_shares", f"{thing}s" if thing == "job" else "batches"
        op.create_table(
            named,
            sa.Column(f"{thing}_id", sa.Uuid(), nullable=False),
            sa.Column("user_id", sa.BigInteger(), nullable=False),
            sa.ForeignKeyConstraint(
                [f"{thing}_id"], [f"{things}.id"], name=op.f(f"fk_{named}_{thing}_id"), ondelete="CASCADE"
            ),
            sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f(f"fk_{named}_user_id"), ondelete="CASCADE"),
            sa.PrimaryKeyConstraint(f"{thing}_id", "user_id", name=op.f(f"pk_{named}")),
        )
    op.create_table(
        "dataset_shares",
        sa.Column("dataset_id", sa.String(length=64), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id", "owner_id"],
            ["datasets.id", "datasets.owner_id"],
            name=op.f("fk_dataset_shares_dataset_id_owner_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_dataset_shares_owner_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_dataset_shares_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("dataset_id", "owner_id", "user_id", name=op.f("pk_dataset_shares")),
    )


def downgrade() -> None:
    for named in ("dataset_shares", "batch_shares", "job_shares"):
        op.drop_table(named)
    for table in _THINGS:
        op.drop_column(table, "shared")
