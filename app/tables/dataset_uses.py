"""The table of what reads an uploaded array: the jobs and batches that name it. A row of a job that reads an upload has
the id of the upload, until that is an array."""

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Identity, Index, String, Table

from warpfold.app.tables.schema import metadata

dataset_uses = Table(
    "dataset_uses",
    metadata,
    Column("seq", BigInteger, Identity(), primary_key=True),
    Column("dataset_id", String(64), nullable=False),
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), index=True),
    Column("batch_id", ForeignKey("batches.id", ondelete="CASCADE"), index=True),
    CheckConstraint("num_nonnulls(job_id, batch_id) = 1", name="one_of_both"),
)
Index("ix_dataset_uses_dataset_id_seq", dataset_uses.c.dataset_id, dataset_uses.c.seq)
