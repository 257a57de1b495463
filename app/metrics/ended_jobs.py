"""Counting jobs that ended. Whoever ends one leaves its id; the dispatcher counts them, each once.

The rows of jobs cannot be counted when somebody asks: they go when their time is over, and a counter must not shrink.
To count where a job ends would have all workers wait for the same few rows.
"""

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection, delete, func, select

from warpfold.app.metrics.buckets import bound_of
from warpfold.app.metrics.counters import Labels, Name, add, labelled
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.measurements import measurements
from warpfold.app.tables.service import uncounted_jobs

Amounts = defaultdict[tuple[Name, Labels], float]

_wait = func.extract("epoch", jobs.c.started_at - jobs.c.created_at).label("wait")
_run = func.extract("epoch", jobs.c.finished_at - jobs.c.started_at).label("run")
_uuid = func.coalesce(measurements.c.device_uuid, "").label("uuid")
_host = func.coalesce(measurements.c.host, "").label("host")


def count_ended(connection: Connection, at_most: int) -> int:
    """Count jobs that ended since the last time; returns how many they were."""
    ids = _take(connection, at_most)
    if not ids:
        return 0
    amounts: Amounts = defaultdict(float)
    _jobs(connection, ids, amounts)
    _kernels(connection, ids, amounts)
    add(connection, amounts)
    return len(ids)


def _take(connection: Connection, at_most: int) -> Sequence[UUID]:
    some = select(uncounted_jobs.c.job_id).limit(at_most).with_for_update(skip_locked=True)
    taken = delete(uncounted_jobs).where(uncounted_jobs.c.job_id.in_(some)).returning(uncounted_jobs.c.job_id)
    return list(connection.execute(taken).scalars())


def _jobs(connection: Connection, ids: Sequence[UUID], amounts: Amounts) -> None:
    ended = select(jobs.c.kind, jobs.c.status, jobs.c.reason, _wait, _run).where(jobs.c.id.in_(ids))
    for row in connection.execute(ended):
        amounts[Name.JOBS_ENDED, labelled(kind=row.kind, status=row.status, reason=row.reason or "")] += 1
        if row.wait is None:
            continue  # cancelled, or given up, before it began
        for count, seconds, duration in (
            (Name.JOB_WAIT, Name.JOB_WAIT_SECONDS, float(row.wait)),
            (Name.JOB_RUN, Name.JOB_RUN_SECONDS, float(row.run)),
        ):
            amounts[count, labelled(kind=row.kind, bucket=bound_of(duration))] += 1
            amounts[seconds, labelled(kind=row.kind)] += duration


def _kernels(connection: Connection, ids: Sequence[UUID], amounts: Amounts) -> None:
    """The time of the runs that count: warm-ups, and the repetitions inside of a sample, are not in it."""
    used = (
        select(
            measurements.c.device,
            _uuid,
            _host,
            func.sum(measurements.c.kernel_ms * measurements.c.samples / 1000).label("seconds"),
        )
        .where(measurements.c.job_id.in_(ids), measurements.c.kernel_ms.is_not(None))
        .group_by(measurements.c.device, _uuid, _host)
    )
    for row in connection.execute(used):
        labels = labelled(device=row.device, uuid=row.uuid, host=row.host)
        amounts[Name.KERNEL_SECONDS, labels] += float(row.seconds)
