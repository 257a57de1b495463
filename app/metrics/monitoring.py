"""SQL that watches the service: the queue, the workers, and whether a dispatcher leads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, case, func, select

from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import in_hand, in_lanes, is_, jobs, lives, waits, workers
from warpfold.app.tables.service import lead
from warpfold.app.tables.users import quota_holds, users
from warpfold.app.tables.webhooks import webhooks
from warpfold.contract.needs import ALL
from warpfold.contract.states import PRIORITIES, Status


@dataclass(frozen=True, slots=True)
class JobCount:
    """How many jobs are on record in a state, and for which reason."""

    status: str
    reason: str | None
    count: int


@dataclass(frozen=True, slots=True)
class WorkerCount:
    """How many workers of a backend are in a state; "lost" are those whose heartbeat expired."""

    backend: str
    state: str
    count: int


@dataclass(frozen=True, slots=True)
class QueueState:
    """The service at a moment. `depth` counts waiting jobs by the name of their priority, `held` users by the quota
    that their jobs wait for, `webhooks_due` messages of ended jobs and batches that are not delivered, `led` whether a
    dispatcher leads."""

    depth: Mapping[str, int]
    oldest_s: float
    jobs: Sequence[JobCount]
    workers: Sequence[WorkerCount]
    held: Mapping[str, int]
    webhooks_due: int
    led: bool


@dataclass(frozen=True, slots=True)
class Share:
    """What a user has in the queue and on the slots, and since when the oldest of the waiting waits."""

    owner: str
    queued: int
    running: int
    oldest: datetime | None


_ALIVE = lives()
_READY = _ALIVE & workers.c.state.in_(("idle", "running")) & ~workers.c.draining

_DEPTH = (
    select(
        jobs.c.priority,
        func.count().label("count"),
        func.extract("epoch", func.now() - func.min(jobs.c.created_at)).label("oldest"),
    )
    .where(waits())
    .group_by(jobs.c.priority)
)
# Two reads, both of an index: only failed jobs, which are few, have a reason.
_BY_STATUS = (
    select(jobs.c.status, func.count().label("count")).where(jobs.c.status != Status.FAILED).group_by(jobs.c.status)
)
_BY_REASON = select(jobs.c.reason, func.count().label("count")).where(is_(Status.FAILED)).group_by(jobs.c.reason)
_state = case(
    (~_ALIVE, "lost"),
    (workers.c.draining & (workers.c.state == "running"), "draining"),
    (workers.c.draining & (workers.c.state == "idle"), "drained"),
    else_=workers.c.state,
).label("seen_as")
_WORKERS = select(workers.c.backend, _state, func.count()).group_by(workers.c.backend, _state)

_HELD = (
    select(quota_holds.c.quota, func.count())
    .where(quota_holds.c.until.is_(None) | (quota_holds.c.until > func.now()))
    .group_by(quota_holds.c.quota)
)
_WEBHOOKS_DUE = (
    select(func.count())
    .select_from(webhooks)
    .outerjoin(jobs, jobs.c.id == webhooks.c.job_id)
    .outerjoin(batches, batches.c.id == webhooks.c.batch_id)
    .where(webhooks.c.due_at.is_not(None), func.coalesce(jobs.c.finished_at, batches.c.settled_at).is_not(None))
)

_MOST_OWNERS = 200
# What waits for a slot is counted by its index alone, which has owners and ages. What was handed over is few.
_lanes = (
    select(jobs.c.owner_id, func.count().label("queued"), func.min(jobs.c.seq).label("oldest"))
    .where(in_lanes(ALL))
    .group_by(jobs.c.owner_id)
    .subquery("lanes")
)
_jobs_in_hand = select(jobs.c.owner_id, jobs.c.status, jobs.c.seq).where(in_hand()).offset(0).subquery("jobs_in_hand")
_handed = (
    select(
        _jobs_in_hand.c.owner_id,
        func.count().filter(is_(Status.QUEUED, _jobs_in_hand)).label("queued"),
        func.count().filter(is_(Status.RUNNING, _jobs_in_hand)).label("running"),
        func.min(_jobs_in_hand.c.seq).filter(is_(Status.QUEUED, _jobs_in_hand)).label("oldest"),
    )
    .group_by(_jobs_in_hand.c.owner_id)
    .subquery("handed")
)
_queued = (func.coalesce(_lanes.c.queued, 0) + func.coalesce(_handed.c.queued, 0)).label("queued")
_oldest = func.least(_lanes.c.oldest, _handed.c.oldest).label("oldest")
_owner = func.coalesce(_lanes.c.owner_id, _handed.c.owner_id)
_most = (
    select(users.c.name, _queued, func.coalesce(_handed.c.running, 0).label("running"), _oldest)
    .select_from(_lanes.join(_handed, _handed.c.owner_id == _lanes.c.owner_id, full=True))
    .join(users, users.c.id == _owner)
    .order_by(_queued.desc(), users.c.name)
    .limit(_MOST_OWNERS)
    .subquery("most")
)
_SHARES = (
    select(_most.c.name, _most.c.queued, _most.c.running, jobs.c.created_at)
    .outerjoin(jobs, jobs.c.seq == _most.c.oldest)
    .order_by(_most.c.queued.desc(), _most.c.name)
)

_LASTS = func.make_interval(0, 0, 0, 0, 0, 0, lead.c.lasts_s)

# A renewal in the future tells that the server's clock was set back: it is no sign of life. A leader that lives renews
# its lead within a second or two, so after any step of the clock the answer is true again.
_FRESH = and_(
    lead.c.holder.is_not(None),
    lead.c.renewed_at > func.now() - _LASTS,
    lead.c.renewed_at < func.now() + _LASTS,
)
_SOMEBODY_LEADS = select(select(lead.c.name).where(_FRESH).exists())


def somebody_leads(connection: Connection) -> bool:
    """Whether some dispatcher has renewed its lead in time."""
    return bool(connection.execute(_SOMEBODY_LEADS).scalar_one())


def queue_state(connection: Connection) -> QueueState:
    """Counts of jobs and workers; 0.1 s with a million jobs on record."""
    waiting = connection.execute(_DEPTH).all()
    names = {rank: name for name, rank in PRIORITIES.items()}
    counts = [JobCount(row.status, None, row[1]) for row in connection.execute(_BY_STATUS)]
    counts += [JobCount(Status.FAILED, row.reason, row[1]) for row in connection.execute(_BY_REASON)]
    return QueueState(
        depth=dict.fromkeys(PRIORITIES, 0) | {names[row.priority]: row[1] for row in waiting},
        oldest_s=max((float(row.oldest) for row in waiting), default=0.0),
        jobs=counts,
        workers=[WorkerCount(*row) for row in connection.execute(_WORKERS)],
        held={row.quota: row[1] for row in connection.execute(_HELD)},
        webhooks_due=int(connection.execute(_WEBHOOKS_DUE).scalar_one()),
        led=somebody_leads(connection),
    )


def live_workers(connection: Connection) -> int:
    """How many workers could take a job now."""
    return int(connection.execute(select(func.count()).select_from(workers).where(_READY)).scalar_one())


def shares(connection: Connection) -> Sequence[Share]:
    """Who has jobs waiting or running, those with the most waiting first; at most 200 users."""
    return [Share(*row) for row in connection.execute(_SHARES)]
