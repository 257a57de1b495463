"""SQL of lists of jobs: newest first, cut by key, never by offset."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Text, bindparam, case, cast, func, select

from warpfold.app.jobs.store import COLUMNS, OWNED, Job, job_of
from warpfold.app.jobs.workers import places
from warpfold.app.tables.jobs import is_, jobs, waits
from warpfold.app.tables.users import users
from warpfold.contract.jobs import Kind
from warpfold.contract.states import Status

_SPEC = cast(func.coalesce(jobs.c.spec_brief, jobs.c.spec), Text).label("spec")
# A study's result has up to megabytes of points: a page of fifty would be as heavy as all of them.
_STUDIES: tuple[Kind, ...] = ("benchmark", "accuracy", "scaling", "profile")
_RESULT = case((jobs.c.kind.not_in(_STUDIES), cast(jobs.c.result, Text))).label("result")
_PAGE = (
    select(_SPEC, _RESULT, *(column for column in COLUMNS if column.name != "result"))
    .select_from(OWNED)
    .order_by(jobs.c.seq.desc())
)

_OWNER = select(users.c.id).where(users.c.name == bindparam("name"))

_queue = (
    select(jobs.c.id, func.row_number().over(order_by=(jobs.c.rank.desc(), jobs.c.seq)).label("position"))
    .where(waits())
    .subquery("queue")
)
_POSITIONS = select(_queue.c.id, _queue.c.position)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs a page lists; None does not restrict. `tags` are (name, value) pairs, a value None for any; `parent`
    is a preset, or False for jobs that are not part of one."""

    status: Status | None = None
    kind: str | None = None
    owner: str | None = None
    tags: tuple[tuple[str, str | None], ...] = ()
    parent: UUID | Literal[False] | None = None


def page(connection: Connection, chosen: Filter, limit: int, before_seq: int | None) -> list[Job]:
    """Up to `limit` jobs, newest first, older than `before_seq`; bulky specs in brief, and without the
    results of studies."""
    where: list[ColumnElement[bool]] = []
    if chosen.status is not None:
        where.append(is_(chosen.status))
    if chosen.kind is not None:
        where.append(jobs.c.kind == chosen.kind)
    if chosen.owner is not None:
        # Asked first, so that the planner knows whose jobs it looks for: few, many, or none.
        owner_id = connection.execute(_OWNER, {"name": chosen.owner}).scalar_one_or_none()
        if owner_id is None:
            return []
        where.append(jobs.c.owner_id == owner_id)
    if chosen.parent is False:
        where.append(jobs.c.parent_id.is_(None))
    elif chosen.parent is not None:
        where.append(jobs.c.parent_id == chosen.parent)
    for name, value in chosen.tags:
        where.append(jobs.c.tags.has_key(name) if value is None else jobs.c.tags.contains({name: value}))
    if before_seq is not None:
        where.append(jobs.c.seq < before_seq)
    rows = connection.execute(_PAGE.where(*where).limit(limit)).mappings().all()
    waiting = [row["id"] for row in rows if row["status"] == Status.QUEUED]
    positions: dict[object, int] = {}
    if waiting:
        # One pass over the queue, not one for each job of the page.
        found = connection.execute(_POSITIONS.where(_queue.c.id.in_(waiting)))
        positions = {row.id: row.position for row in found}
    slots = places(connection) if waiting else ()
    listed = [job_of({**row, "queue_position": positions.get(row["id"])}) for row in rows]
    return [job.seeing(slots) if job.status is Status.QUEUED else job for job in listed]
