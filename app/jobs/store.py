"""SQL of the api for one job: accept it, read it, ask for its end. `app.jobs.pages` has the lists.

Statements are built once, here, with bound parameters: SQLAlchemy then finds their compiled form at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    SmallInteger,
    String,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.channels import QUEUE
from warpfold.app.jobs import estimates
from warpfold.app.jobs import presets as families
from warpfold.app.jobs.presets import Child, versions
from warpfold.app.jobs.transitions import change, wake_dispatcher
from warpfold.app.jobs.workers import Place, Waiting, fingerprint, places, waiting_for
from warpfold.app.quotas.holds import HOLDING, holding
from warpfold.app.quotas.quota import Hold, QuotaName
from warpfold.app.tables.jobs import (
    NONE,
    events,
    idempotency_keys,
    in_hand,
    in_lanes,
    is_,
    jobs,
    still,
    still_waits,
    waits,
)
from warpfold.app.tables.quotas import quotas
from warpfold.app.tables.users import users
from warpfold.contract.needs import ALL
from warpfold.contract.states import PRIORITIES, EventType, Status


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be accepted. `spec` is its JSON text, `spec_brief` what lists show in place of a bulky one; a child has
    a parent, accepted before it, and is called `name` there."""

    id: UUID
    owner_id: int
    kind: str
    priority: int
    needs: str
    timeout_s: float
    spec: str
    spec_brief: str | None
    tags: Mapping[str, str]
    parent_id: UUID | None = None
    name: str | None = None
    request_id: str | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key and the hash of the body that came with it."""

    name: str
    body_hash: bytes


@dataclass(frozen=True, slots=True)
class Accepted:
    """What the database adds to a new job."""

    seq: int
    created_at: datetime
    queue_position: int
    rank: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """Enough of a job to say whether an answer about it is still current. `children` is the sum of its children's
    versions, `hold` the quota that it waits for; `slots` tells, while it or a child of it waits, which slots there
    are."""

    version: int
    status: Status
    queue_position: int | None
    children: int = 0
    hold: str | None = None
    slots: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A job's row. `spec` and `result` are JSON as text: they are passed on, not read.

    `rank` is the priority as which it waits. `queue_position` is 1 for the queued job that is next by rank and age
    (fair share may let another owner's pass), None unless queued and to be run. `children` are those of a preset that
    is read alone, in their order.
    """

    id: UUID
    seq: int
    version: int
    kind: str
    status: Status
    spec: str
    owner: str
    owner_id: int
    priority: int
    rank: int
    tags: Mapping[str, str]
    attempt: int
    worker: str | None
    cancel_requested_at: datetime | None
    reason: str | None
    error: str | None
    progress_done: int
    progress_total: int
    progress_unit: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: str | None
    queue_position: int | None
    parent_id: UUID | None
    name: str | None
    children: tuple[Child, ...] | None = None
    needs: str = NONE
    dispatched_at: datetime | None = None
    hold: Hold | None = None
    waiting: Waiting | None = None
    slots: str = ""
    estimated_start_at: datetime | None = None

    @classmethod
    def queued(cls, new: NewJob, owner: str, accepted: Accepted) -> "Job":
        """A job as it is right after its acceptance."""
        return cls(
            id=new.id,
            seq=accepted.seq,
            version=1,
            kind=new.kind,
            status=Status.QUEUED,
            spec=new.spec,
            owner=owner,
            owner_id=new.owner_id,
            priority=new.priority,
            rank=accepted.rank,
            tags=new.tags,
            attempt=1,
            worker=None,
            cancel_requested_at=None,
            reason=None,
            error=None,
            progress_done=0,
            progress_total=0,
            progress_unit="",
            created_at=accepted.created_at,
            started_at=None,
            finished_at=None,
            result=None,
            queue_position=None if new.needs == NONE else accepted.queue_position,
            parent_id=new.parent_id,
            name=new.name,
            needs=new.needs,
        )

    @property
    def stamp(self) -> Stamp:
        return Stamp(
            self.version,
            self.status,
            self.queue_position,
            sum(child.version for child in self.children or ()),
            None if self.hold is None else self.hold.quota,
            self.slots,
        )

    def seeing(self, found: Sequence[Place]) -> "Job":
        """The job with what it waits for, given the slots that there are; unchanged if nothing of it waits."""
        waiting = [one for one in self.children or () if one.status is Status.QUEUED]
        if not waiting and self.status is not Status.QUEUED:
            return self
        seen = replace(self, slots=fingerprint(found))
        if self.needs != NONE:
            return seen if self.dispatched_at else replace(seen, waiting=waiting_for(self.needs, found))
        for one in waiting:
            why = None if one.handed_over else waiting_for(one.needs, found)
            if why is not None:
                return replace(seen, waiting=Waiting(why.reason, f"Its job {one.name} waits: {why.detail}"))
        return seen


@dataclass(frozen=True, slots=True)
class Kept:
    """An idempotency key that was used before."""

    body_hash: bytes
    job_id: UUID


COLUMNS = (
    jobs.c.id,
    jobs.c.seq,
    jobs.c.version,
    jobs.c.kind,
    jobs.c.status,
    users.c.name.label("owner"),
    jobs.c.owner_id,
    jobs.c.priority,
    jobs.c.rank,
    jobs.c.tags,
    jobs.c.attempt,
    jobs.c.worker,
    jobs.c.cancel_requested_at,
    jobs.c.reason,
    jobs.c.error,
    jobs.c.progress_done,
    jobs.c.progress_total,
    jobs.c.progress_unit,
    jobs.c.created_at,
    jobs.c.started_at,
    jobs.c.finished_at,
    jobs.c.parent_id,
    jobs.c.name,
    jobs.c.needs,
    jobs.c.dispatched_at,
    cast(jobs.c.result, Text).label("result"),
)
OWNED = jobs.join(users, users.c.id == jobs.c.owner_id)

_ahead = jobs.alias("ahead")
_POSITION = case(
    (
        waits(),
        select(1 + func.count())
        .select_from(_ahead)
        .where(
            waits(_ahead),
            or_(
                _ahead.c.rank > jobs.c.rank,
                and_(_ahead.c.rank == jobs.c.rank, _ahead.c.seq < jobs.c.seq),
            ),
        )
        .correlate(jobs)
        .scalar_subquery(),
    )
).label("queue_position")
_ONE = jobs.c.id == bindparam("job_id")

_GET = (
    select(cast(jobs.c.spec, Text).label("spec"), *COLUMNS, _POSITION, *HOLDING)
    .select_from(OWNED.outerjoin(holding, true()))
    .where(_ONE)
)
_STAMP = (
    select(jobs.c.version, jobs.c.status, _POSITION, versions, holding.c.quota, families.waiting)
    .select_from(jobs.outerjoin(holding, true()))
    .where(_ONE)
)
# Both by an index that holds what waits or is in hand, and nothing of the owner's history.
_WAITING_OF = select(func.count()).where(in_lanes(ALL), jobs.c.owner_id == bindparam("owner_id"))
_AT_HAND_OF = select(func.count()).where(
    in_hand(), still(Status.QUEUED), jobs.c.owner_id + literal_column("0") == bindparam("owner_id")
)
_HOUR = func.make_interval(0, 0, 0, 0, 1)
_HIGH = PRIORITIES["high"]


def _rank() -> ColumnElement[int]:
    """As what a new job is to wait: a high one beyond its owner's budget of the hour as a normal one. A preset takes
    nothing of the budget: its children do."""
    high = literal_column(str(_HIGH), SmallInteger)
    of_the_hour = select(func.count()).where(
        jobs.c.owner_id == bindparam("owner_id"),
        jobs.c.priority == high,
        jobs.c.rank == high,
        jobs.c.created_at > func.now() - _HOUR,
        jobs.c.needs != NONE,
    )
    own_budget = select(quotas.c.high_per_hour).where(quotas.c.user_id == bindparam("owner_id")).scalar_subquery()
    budget = func.coalesce(own_budget, bindparam("high_per_hour", type_=Integer))
    asked = bindparam("priority", type_=SmallInteger)
    beyond = and_(asked == high, bindparam("needs", type_=String) != NONE, of_the_hour.scalar_subquery() >= budget)
    return case((beyond, literal_column(str(PRIORITIES["normal"]), SmallInteger)), else_=asked)


_KEY = select(idempotency_keys.c.body_hash, idempotency_keys.c.job_id).where(
    idempotency_keys.c.owner_id == bindparam("owner_id"), idempotency_keys.c.key == bindparam("key")
)


def _acceptance(*, keyed: bool) -> Select[Any]:
    """One statement that stores a job with its first event and wakes the dispatcher, where the owner has room in the
    queue and, if `keyed`, the key is new. Two requests with one key that arrive together meet in the unique index: the
    second waits for the first's commit."""
    names = list(NewJob.__dataclass_fields__)
    new = [
        cast(bindparam(name, type_=Text), jobs.c[name].type)  # JSON text, as it is
        if name in ("spec", "spec_brief")
        else bindparam(name, type_=jobs.c[name].type)
        for name in names
    ]
    source = select(*new, _rank().label("rank"))
    own_limit = select(quotas.c.queued).where(quotas.c.user_id == bindparam("owner_id")).scalar_subquery()
    places = bindparam("places", type_=Integer)
    room = _WAITING_OF.scalar_subquery() + _AT_HAND_OF.scalar_subquery() + places <= func.coalesce(
        own_limit, bindparam("limit")
    )
    if keyed:
        key = [bindparam(name, type_=idempotency_keys.c[name].type) for name in ("owner_id", "key", "body_hash")]
        job_id = bindparam("id", type_=jobs.c.id.type)
        kept = (
            upsert(idempotency_keys)
            .from_select(["owner_id", "key", "body_hash", "job_id"], select(*key, job_id).where(room))
            .on_conflict_do_nothing()
            .returning(idempotency_keys.c.job_id)
            .cte("kept")
        )
        source = source.select_from(kept)
    else:
        source = source.where(room)
    accepted = (
        insert(jobs)
        .from_select([*names, "rank"], source)
        .returning(jobs.c.id, jobs.c.seq, jobs.c.created_at, jobs.c.rank)
        .cte("accepted")
    )
    event = select(accepted.c.id, literal(1), literal(EventType.SUBMITTED.value), literal({}, events.c.data.type))
    submitted = insert(events).from_select(["job_id", "seq", "type", "data"], event).cte("submitted")
    # The statement does not see its own insertion: all that it sees of the same rank is ahead.
    position = select(1 + func.count()).where(waits(), jobs.c.rank >= select(accepted.c.rank).scalar_subquery())
    return select(
        accepted.c.seq,
        accepted.c.created_at,
        accepted.c.rank,
        position.scalar_subquery().label("queue_position"),
        func.pg_notify(QUEUE, ""),
    ).add_cte(submitted)


_NO_LIMIT = (1 << 31) - 1
_TURNS = 0x71_75_65_75 << 32  # advisory locks "queu", one an owner
_TURN = select(func.pg_advisory_xact_lock(bindparam("turn", type_=BigInteger)))
_ACCEPT = _acceptance(keyed=False)
_ACCEPT_KEYED = _acceptance(keyed=True)


def accept(
    connection: Connection,
    new: NewJob,
    limit: int = _NO_LIMIT,
    key: Key | None = None,
    *,
    places: int = 1,
    high_per_hour: int = _NO_LIMIT,
) -> Accepted | None:
    """Store a queued job; None if its owner has fewer than `places` left in the queue by their quota (`limit` where
    none was set for them), or has used the key before. A preset takes none itself, but needs one for each child. High
    jobs beyond the owner's quota of an hour (`high_per_hour` where none was set) are to wait as normal ones.

    Submissions of one owner take turns until they commit: else several could each see the last place free.
    """
    connection.execute(_TURN, {"turn": _TURNS + new.owner_id})
    given = {name: getattr(new, name) for name in NewJob.__dataclass_fields__}
    given |= {"limit": limit, "places": places, "high_per_hour": high_per_hour}
    if key is None:
        row = connection.execute(_ACCEPT, given).one_or_none()
    else:
        row = connection.execute(_ACCEPT_KEYED, given | {"key": key.name, "body_hash": key.body_hash}).one_or_none()
    return None if row is None else Accepted(row.seq, row.created_at, row.queue_position, row.rank)


def find_key(connection: Connection, owner_id: int, key: str) -> Kept | None:
    """What an idempotency key of this owner is bound to."""
    row = connection.execute(_KEY, {"owner_id": owner_id, "key": key}).one_or_none()
    return None if row is None else Kept(row.body_hash, row.job_id)


def get(connection: Connection, job_id: UUID) -> Job | None:
    """One job, whole."""
    row = connection.execute(_GET, {"job_id": job_id}).mappings().one_or_none()
    if row is None:
        return None
    job = job_of(row)
    if job.needs == NONE:
        job = replace(job, children=families.children(connection, job.id))
    elif job.status is Status.QUEUED:
        job = replace(job, estimated_start_at=estimates.start_of(connection, job.id, job.hold))
    return job if job.status.terminal else job.seeing(places(connection))


def stamp(connection: Connection, job_id: UUID) -> Stamp | None:
    """One job's version, for polls: one row by primary key, and its place in the queue if it waits."""
    row = connection.execute(_STAMP, {"job_id": job_id}).one_or_none()
    if row is None:
        return None
    waits_for_slots = row.status == Status.QUEUED or row.children_wait
    slots = fingerprint(places(connection)) if waits_for_slots else ""
    return Stamp(row[0], Status(row[1]), row[2], int(row[3]), row[4], slots)


def request_cancel(connection: Connection, job_id: UUID) -> None:
    """Cancel a queued job at once; leave a running one a note that its worker finds. No effect on other states, and
    none on presets, which have `families.cancel`."""
    # Locked first, or the job could go back to the queue between the two changes, and be run.
    connection.execute(select(jobs.c.id).where(jobs.c.id == job_id).with_for_update(key_share=True))
    ended = change(
        connection,
        update(jobs)
        .where(jobs.c.id == job_id, still_waits())
        .values(status=Status.CANCELLED, cancel_requested_at=func.now(), finished_at=func.now()),
        EventType.CANCELLED,
    )
    if ended:
        wake_dispatcher(connection)
        return
    change(
        connection,
        update(jobs)
        .where(jobs.c.id == job_id, is_(Status.RUNNING), jobs.c.needs != NONE, jobs.c.cancel_requested_at.is_(None))
        .values(cancel_requested_at=func.now()),
        EventType.CANCEL_REQUESTED,
    )


def job_of(row: Mapping[Any, Any]) -> Job:
    """A row of `COLUMNS`, `spec` and `queue_position`, and perhaps of `HOLDING`."""
    facts = {**row, "status": Status(row["status"])}
    quota, limit, until = (facts.pop(column.name, None) for column in HOLDING)
    return Job(**facts, hold=None if quota is None else Hold(QuotaName(quota), limit, until))
