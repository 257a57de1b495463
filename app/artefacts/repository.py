"""SQL of stored results: they are added in the transaction that ends their job, and removed with it or before it."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.artefacts.store import ArtefactName, ArtefactStore
from warpfold.app.db import BlockingDatabase
from warpfold.app.quotas.bytes_held import bytes_held, lock_holdings
from warpfold.app.tables.artefacts import artefacts
from warpfold.app.tables.jobs import is_, jobs
from warpfold.contract.states import Status


class OverQuota(Exception):
    """The result would take the owner beyond the quota; the message is a sentence for the owner."""


@dataclass(frozen=True, slots=True)
class StoredArtefact:
    """A stored result: its name and its owner."""

    name: ArtefactName
    owner_id: int


def keep(connection: Connection, store: ArtefactStore, name: ArtefactName, nbytes: int, quota: int) -> None:
    """Record that the owner of a job holds the result that the job wrote, and move the result to its place. A
    repetition changes nothing.

    Raises OverQuota and OSError; the caller then rolls its transaction back.
    """
    owner_id = connection.execute(select(jobs.c.owner_id).where(jobs.c.id == name.job_id)).scalar_one()
    lock_holdings(connection, owner_id)
    added = connection.execute(
        upsert(artefacts)
        .values(job_id=name.job_id, attempt=name.attempt, owner_id=owner_id, bytes=nbytes)
        .on_conflict_do_nothing()
        .returning(artefacts.c.job_id)
    ).one_or_none()
    held = bytes_held(connection, owner_id)
    if added is not None and held > quota:
        raise OverQuota(
            f"The result has {nbytes:,} bytes, with which the owner's datasets and stored results would be {held:,} "
            f"bytes, more than the quota of {quota:,}; delete some first."
        )
    # Within the transaction: a row never stands without its files. Files without a row are swept up.
    store.place(name)


def get(connection: Connection, job_id: UUID) -> StoredArtefact | None:
    """The stored result of a job; None if the job stored no result, or if the result was removed."""
    row = connection.execute(
        select(artefacts.c.attempt, artefacts.c.owner_id).where(artefacts.c.job_id == job_id)
    ).one_or_none()
    return None if row is None else StoredArtefact(ArtefactName(job_id, row.attempt), row.owner_id)


def release(connection: Connection, job_id: UUID) -> bool:
    """Remove the row of a job's stored result. False if there was no row."""
    return bool(connection.execute(delete(artefacts).where(artefacts.c.job_id == job_id)).rowcount)


def release_old(connection: Connection, older_than: timedelta) -> int:
    """Remove the rows of all results that were stored longer ago than `older_than`; returns how many there were."""
    old = artefacts.c.created_at < func.now() - older_than
    return connection.execute(delete(artefacts).where(old)).rowcount


def is_needed(connection: Connection, name: ArtefactName) -> bool:
    """Whether the files of an attempt are of use: a row holds them, or the attempt runs and may still be writing. One
    statement asks for both, so that an attempt that ends meanwhile is seen as the one or the other."""
    held = select(artefacts.c.job_id).where(artefacts.c.job_id == name.job_id, artefacts.c.attempt == name.attempt)
    running = select(jobs.c.id).where(jobs.c.id == name.job_id, jobs.c.attempt == name.attempt, is_(Status.RUNNING))
    return connection.execute(select(held.exists() | running.exists())).scalar_one()


def tidy(database: BlockingDatabase, store: ArtefactStore, older_than: timedelta) -> int:
    """Remove expired results, and all files that no row and no running attempt needs; returns how many results were
    removed."""
    database.run(release_old, older_than)
    gone = [name for name in store.names() if not database.run(is_needed, name)]
    for name in gone:
        store.remove(name)
    return len(gone)
