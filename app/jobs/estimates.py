"""When a waiting job may start: from the running jobs and the jobs ahead of it, at the mean duration of the latest jobs
of each kind.
The estimate is no promise: it knows priority and age, not fair shares, the quotas of others, or what comes next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, Uuid, and_, bindparam, func, select

from warpfold.app.jobs.positions import ahead_of
from warpfold.app.quotas.quota import Hold
from warpfold.app.tables.jobs import is_, jobs, lives, workers
from warpfold.contract.states import Status

_LATEST = 500
"""How many of the latest jobs that ended, of all kinds, the mean_durations are taken from."""

_ANY = "any"

_latest = (
    select(jobs.c.kind, jobs.c.worker, jobs.c.started_at, jobs.c.finished_at, jobs.c.status)
    .where(jobs.c.finished_at.is_not(None))
    .order_by(jobs.c.finished_at.desc())
    .limit(_LATEST)
    .subquery("latest")
)
_MEAN_DURATIONS = (
    select(
        _latest.c.kind,
        workers.c.backend,
        func.avg(func.extract("epoch", _latest.c.finished_at - _latest.c.started_at)).label("seconds"),
    )
    .select_from(_latest)
    .join(workers, workers.c.id == _latest.c.worker)
    .where(_latest.c.status == Status.SUCCEEDED.value)
    .group_by(_latest.c.kind, workers.c.backend)
)
# Open slots, each with the job that it runs, if any.
_SLOTS = (
    select(
        workers.c.backend,
        jobs.c.kind,
        func.extract("epoch", func.now() - jobs.c.started_at).label("ran_s"),
        func.now().label("now"),
    )
    .select_from(workers)
    .outerjoin(jobs, and_(jobs.c.slot == workers.c.id, is_(Status.RUNNING)))
    .where(lives(), workers.c.state.in_(("idle", "running")), ~workers.c.draining)
)
_NEEDS = select(jobs.c.needs).where(jobs.c.id == bindparam("job_id", type_=Uuid))


@dataclass(frozen=True, slots=True)
class MeanDurations:
    """Mean seconds of a job by (kind, backend)."""

    seconds: Mapping[tuple[str, str], float]

    def of(self, kind: str, backends: Sequence[str]) -> float | None:
        """The mean of a job that any of `backends` may take; None where no such job is among the latest."""
        known = [self.seconds[kind, backend] for backend in backends if (kind, backend) in self.seconds]
        return sum(known) / len(known) if known else None


def start_of(connection: Connection, job_id: UUID, hold: Hold | None) -> datetime | None:
    """When a waiting job may start; None where that is unknown: no slot is open for it, something ahead is of a kind
    that did not run lately, or it waits for a job of its owner to end."""
    if hold is not None and hold.until is None:
        return None
    needs = connection.execute(_NEEDS, {"job_id": job_id}).scalar_one()
    slots = [row for row in connection.execute(_SLOTS) if needs in (_ANY, row.backend)]
    if not slots:
        return None
    backends = sorted({row.backend for row in slots})
    latest = connection.execute(_MEAN_DURATIONS)
    means = MeanDurations({(row.kind, row.backend): float(row.seconds) for row in latest})
    work_s = 0.0
    for slot in slots:
        if slot.kind is not None:
            mean_s = means.of(slot.kind, [slot.backend])
            if mean_s is None:
                return None
            work_s += max(0.0, mean_s - float(slot.ran_s))
    ahead = [each for each in ahead_of(connection, job_id) if each.needs in (_ANY, *backends)]
    for jobs_ahead in ahead:
        mean_s = means.of(jobs_ahead.kind, backends if jobs_ahead.needs == _ANY else [jobs_ahead.needs])
        if mean_s is None:
            return None
        work_s += jobs_ahead.number * mean_s
    busy = sum(slot.kind is not None for slot in slots) + sum(jobs_ahead.number for jobs_ahead in ahead)
    now: datetime = slots[0].now
    start = now if busy < len(slots) else now + timedelta(seconds=work_s / len(slots))
    return start if hold is None or hold.until is None else max(start, hold.until)
