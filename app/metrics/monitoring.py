"""SQL that watches the service: the queue, the workers, and whether a dispatcher leads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    Connection,
    SmallInteger,
    String,
    Text,
    TextClause,
    and_,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    select,
    text,
    union_all,
)

from warpfold.app import census
from warpfold.app.census import BEGINNING, END, NEAR, PRIORITY, REASON, STATUS, few, waiting_between, waiting_by_owner
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import NONE, in_hand, is_, jobs, lives, still, workers
from warpfold.app.tables.service import lead
from warpfold.app.tables.users import quota_holds, users
from warpfold.app.tables.webhooks import webhooks
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
    """The numbers of a user's jobs in the queue and on the slots, and the time since which the oldest of the waiting
    jobs waits."""

    owner: str
    queued: int
    running: int
    oldest: datetime | None


_ALIVE = lives()
_READY = _ALIVE & workers.c.state.in_(("idle", "running")) & ~workers.c.draining


_ACTIVE = [literal_column(f"'{status.value}'", String) for status in (Status.QUEUED, Status.RUNNING)]
_active_presets = and_(jobs.c.needs == literal_column(f"'{NONE}'", String), jobs.c.status.in_(_ACTIVE))
_waiting = (
    text(waiting_between(BEGINNING, END, NEAR + 1, "priority"))
    .columns(column("priority", SmallInteger))
    .subquery("waiting")
)
_presets = few(select(jobs.c.id).where(_active_presets, still(Status.QUEUED)), "presets")
_failed = few(select(jobs.c.reason).where(is_(Status.FAILED)), "failed")
_succeeded = few(select(jobs.c.seq).where(is_(Status.SUCCEEDED)), "succeeded")
_cancelled = few(select(jobs.c.seq).where(is_(Status.CANCELLED)), "cancelled")
# Rows of each kind are counted up to `few`, which stops at one more. Running jobs are few, because slots are.
_COUNTS = union_all(
    select(literal(PRIORITY), cast(_waiting.c.priority, Text), func.count()).group_by(_waiting.c.priority),
    select(literal(REASON), func.coalesce(_failed.c.reason, ""), func.count()).group_by(_failed.c.reason),
    select(literal(STATUS), literal(Status.SUCCEEDED.value), func.count()).select_from(_succeeded),
    select(literal(STATUS), literal(Status.CANCELLED.value), func.count()).select_from(_cancelled),
    select(literal(STATUS), literal(Status.RUNNING.value), func.count()).select_from(jobs).where(is_(Status.RUNNING)),
    select(literal(STATUS), literal(Status.QUEUED.value), func.count()).select_from(_presets),
)
# The oldest of each rank is the first of the index of the queue.
_OLDEST: TextClause = text("""
    select extract(epoch from now() - min(first.created_at))
    from unnest(array[2, 1, 0]::smallint[]) as ranks(rank) cross join lateral (
        select created_at from jobs
        where status = 'queued' and needs <> 'none' and jobs.rank >= ranks.rank and jobs.rank <= ranks.rank
        order by jobs.rank desc, seq limit 1  -- only ix_jobs_queue has that order
    ) as first
""")
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
_lanes = waiting_by_owner()
# Few jobs are handed over at a time.
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
_queued = (func.coalesce(_lanes.c.number, 0) + func.coalesce(_handed.c.queued, 0)).label("queued")
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
# From a number to itself, and in their order: only the index of the numbers has it.
_since = (
    select(jobs.c.created_at)
    .where(jobs.c.seq >= _most.c.oldest, jobs.c.seq <= _most.c.oldest)
    .order_by(jobs.c.seq)
    .limit(1)
    .correlate(_most)
    .scalar_subquery()
)
_SHARES = select(_most.c.name, _most.c.queued, _most.c.running, _since).order_by(_most.c.queued.desc(), _most.c.name)

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
    """Counts of jobs and workers. A number of jobs beyond a thousand is that of the latest census."""
    counts: dict[tuple[str, str], int] = {(row[0], row[1]): row[2] for row in connection.execute(_COUNTS)}
    cut = {topic for topic in (PRIORITY, REASON) if sum(n for (of, _), n in counts.items() if of == topic) > NEAR}
    if cut or max(counts.values(), default=0) > NEAR:
        for (topic, label), number in census.latest(connection).items():
            # Numbers that were just counted replace those of the census.
            if topic in cut or (topic == STATUS and counts.get((topic, label), 0) > NEAR):
                counts[topic, label] = max(number, counts.get((topic, label), 0))
    depth = {name: counts.get((PRIORITY, str(rank)), 0) for name, rank in PRIORITIES.items()}
    counts[STATUS, Status.QUEUED] = counts.get((STATUS, Status.QUEUED), 0) + sum(depth.values())
    of_states = [JobCount(label, None, number) for (topic, label), number in counts.items() if topic == STATUS]
    failed = [JobCount(Status.FAILED, label, number) for (topic, label), number in counts.items() if topic == REASON]
    oldest = connection.execute(_OLDEST).scalar_one_or_none()
    return QueueState(
        depth=depth,
        oldest_s=0.0 if oldest is None else float(oldest),
        jobs=[count for count in (*of_states, *failed) if count.count],
        workers=[WorkerCount(*row) for row in connection.execute(_WORKERS)],
        held={row.quota: row[1] for row in connection.execute(_HELD)},
        webhooks_due=int(connection.execute(_WEBHOOKS_DUE).scalar_one()),
        led=somebody_leads(connection),
    )


def live_workers(connection: Connection) -> int:
    """How many workers could take a job now."""
    return int(connection.execute(select(func.count()).select_from(workers).where(_READY)).scalar_one())


def drained_workers(connection: Connection) -> int:
    """How many live workers an admin wants to take no more jobs."""
    drained = select(func.count()).select_from(workers).where(lives(), workers.c.draining)
    return int(connection.execute(drained).scalar_one())


def shares(connection: Connection) -> Sequence[Share]:
    """The users who have jobs waiting or running, at most 200; those with the most waiting jobs come first."""
    return [Share(*row) for row in connection.execute(_SHARES)]
