"""Which jobs and batches read an uploaded array. Jobs that have not ended are noted at once, and older ones are not."""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

# An array has an id of 64 hexadecimal digits, an upload one of 32. No other `id` in a spec is so.
_ACTIVE = """
    insert into dataset_uses (dataset_id, job_id)
    select distinct named.id #>> '{}', jobs.id
    from jobs cross join lateral jsonb_path_query(jobs.spec::jsonb, 'strict $.**.id') as named(id)
    where jobs.status in ('queued', 'running') and jobs.parent_id is null
      and named.id #>> '{}' ~ '^[0-9a-f]{32}([0-9a-f]{32})?$'
"""


def upgrade() -> None:
    op.create_table(
        "dataset_uses",
        sa.Column("seq", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("dataset_id", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=True),
        sa.Column("batch_id", sa.Uuid(), nullable=True),
        sa.CheckConstraint("num_nonnulls(job_id, batch_id) = 1", name=op.f("ck_dataset_uses_one_of_both")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_dataset_uses_job_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["batches.id"], name=op.f("fk_dataset_uses_batch_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_dataset_uses")),
    )
    op.create_index("ix_dataset_uses_dataset_id_seq", "dataset_uses", ["dataset_id", "seq"], unique=False)
    for thing in ("job", "batch"):
        op.create_index(op.f(f"ix_dataset_uses_{thing}_id"), "dataset_uses", [f"{thing}_id"], unique=False)
    op.execute(_ACTIVE)


def downgrade() -> None:
    op.drop_table("dataset_uses")
