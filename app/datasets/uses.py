"""SQL of what read an uploaded array: the jobs and the batches that name it, newest first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, insert, select, update

from warpfold.app.auth.visibility import Viewer, visible
from warpfold.app.tables.batches import batches
from warpfold.app.tables.dataset_uses import dataset_uses
from warpfold.app.tables.jobs import jobs

_LOOKED_AT = 1000


@dataclass(frozen=True, slots=True)
class Uses:
    """The newest jobs, each as its `seq` and its id, and the ids of the newest batches that name an array."""

    jobs: Sequence[tuple[int, UUID]]
    batches: Sequence[UUID]


def note(connection: Connection, ids: Collection[str], *, job: UUID | None = None, batch: UUID | None = None) -> None:
    """Note that a job or a batch reads these arrays, or uploads that are to become arrays."""
    if ids:
        rows = [{"dataset_id": each, "job_id": job, "batch_id": batch} for each in ids]
        connection.execute(insert(dataset_uses), rows)


def became(connection: Connection, upload_id: str, dataset_id: str) -> None:
    """Note that an upload is an array now: what read it reads the array."""
    of_upload = update(dataset_uses).where(dataset_uses.c.dataset_id == upload_id)
    connection.execute(of_upload.values(dataset_id=dataset_id))


def newest(connection: Connection, dataset_id: str, viewer: Viewer, most: int) -> Uses:
    """Up to `most` jobs and so many batches that the viewer sees, newest first, of the newest uses: a user may see few
    of a million."""
    of_dataset = select(dataset_uses).where(dataset_uses.c.dataset_id == dataset_id)
    uses = of_dataset.order_by(dataset_uses.c.seq.desc()).limit(_LOOKED_AT).subquery()
    of_jobs = select(jobs.c.seq, jobs.c.id).join(uses, uses.c.job_id == jobs.c.id).where(visible(jobs, viewer))
    of_batches = select(batches.c.id).join(uses, uses.c.batch_id == batches.c.id).where(visible(batches, viewer))
    seen = connection.execute(of_jobs.order_by(uses.c.seq.desc()).limit(most))
    brought = connection.execute(of_batches.order_by(uses.c.seq.desc()).limit(most))
    return Uses([(row.seq, row.id) for row in seen], brought.scalars().all())
