"""A batch is one row in lists of jobs: where it stands there, and an index of the jobs that came by themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("batches", sa.Column("first_seq", sa.BigInteger(), nullable=True))
    op.add_column("batches", sa.Column("last_seq", sa.BigInteger(), nullable=True))
    # A batch whose jobs are gone stays without: retention removes it next.
    op.execute("""
        update batches set first_seq = jobs.first_seq, last_seq = jobs.last_seq
        from (
            select batch_id, min(seq) as first_seq, max(seq) as last_seq from jobs where batch_id is not null
            group by batch_id
        ) as jobs
        where batches.id = jobs.batch_id
    """)
    op.create_index("ix_batches_first_seq", "batches", ["first_seq"], unique=False)
    op.create_index("ix_batches_owner_id_first_seq", "batches", ["owner_id", "first_seq"], unique=False)
    op.create_index("ix_jobs_alone", "jobs", ["seq"], unique=False, postgresql_where=sa.text("batch_id is null"))


def downgrade() -> None:
    op.drop_index("ix_jobs_alone", table_name="jobs")
    op.drop_index("ix_batches_owner_id_first_seq", table_name="batches")
    op.drop_index("ix_batches_first_seq", table_name="batches")
    op.drop_column("batches", "last_seq")
    op.drop_column("batches", "first_seq")
