"""Who may see what: the one rule about datasets, jobs and batches, which every request for one of them asks.

A thing is seen by its owner and by admins, by everyone if it is shared with everyone, and by the users whom its owner
named. What belongs to a job is seen by whoever sees the job: its result, stored result, events, measurements, report
and deliveries. The jobs of a preset and of a batch are shared with it.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Self
from uuid import UUID

from sqlalchemy import Boolean, ColumnElement, Connection, Table, func, literal, or_, select, true

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.config import Settings
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.sharing import batch_shares, dataset_shares, job_shares
from warpfold.app.tables.users import datasets


@dataclass(frozen=True, slots=True)
class Viewer:
    """The user who wants to see something. `old_datasets` and `old_jobs` say whether everyone sees what was stored
    before it could be shared."""

    user_id: int
    sees_all: bool
    old_datasets: bool = False
    old_jobs: bool = False

    @classmethod
    def of(cls, principal: Principal, settings: Settings) -> Self:
        old = settings.share_old
        return cls(principal.id, principal.is_admin, old == "everything", old != "nothing")


THE_SERVICE = Viewer(0, sees_all=True)
"""The viewer for what the service itself reads."""


@lru_cache(512)
def visible(thing: Table, viewer: Viewer) -> ColumnElement[bool]:
    """The rule, as a condition on a row of `datasets`, `jobs` or `batches`."""
    if viewer.sees_all:
        return true()
    old = viewer.old_datasets if thing is datasets else viewer.old_jobs
    shared: ColumnElement[bool] = func.coalesce(thing.c.shared, literal(old, Boolean))
    return or_(shared, thing.c.owner_id == viewer.user_id, _named(thing, viewer.user_id))


def open_to_all(thing: Table, viewer: Viewer) -> ColumnElement[bool]:
    """Whether everyone sees a row: what is made of a private thing is private, too."""
    return visible(thing, Viewer(0, False, viewer.old_datasets, viewer.old_jobs))


def sees(connection: Connection, viewer: Viewer, thing: Table, identity: UUID | str, owner_id: int) -> bool:
    """Whether the viewer sees one thing of an owner."""
    if viewer.sees_all or viewer.user_id == owner_id:
        return True  # as the rule says, without a statement
    seen = select(literal(1)).where(thing.c.id == identity, thing.c.owner_id == owner_id, visible(thing, viewer))
    return connection.execute(select(seen.exists())).scalar_one()


_PARENT = jobs.alias("parent")


def _named(thing: Table, user_id: int) -> ColumnElement[bool]:
    if thing is datasets:
        own = dataset_shares.c.dataset_id == datasets.c.id, dataset_shares.c.owner_id == datasets.c.owner_id
        return select(literal(1)).where(*own, dataset_shares.c.user_id == user_id).exists()
    of_batch = select(literal(1)).where(batch_shares.c.user_id == user_id)
    if thing is batches:
        return of_batch.where(batch_shares.c.batch_id == batches.c.id).exists()
    assert thing is jobs, thing.name
    # A job of a preset has no batch itself: its preset has.
    brought = func.coalesce(
        jobs.c.batch_id,
        select(_PARENT.c.batch_id).where(_PARENT.c.id == jobs.c.parent_id).correlate(jobs).scalar_subquery(),
    )
    of_job = select(literal(1)).where(
        job_shares.c.user_id == user_id, job_shares.c.job_id.in_([jobs.c.id, jobs.c.parent_id])
    )
    return or_(of_job.exists(), of_batch.where(batch_shares.c.batch_id == brought).exists())
