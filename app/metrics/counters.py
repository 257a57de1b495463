"""Counters in Postgres: numbers that only grow and must outlive every process.

The process that ends a job leaves its id; the dispatcher counts these jobs, each once. The rows of jobs cannot be
counted when somebody asks: they go when their time is over, and a counter must not shrink. If each end were counted at
once, all workers would wait for the same few rows.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from sqlalchemy import Connection, Double, cast, delete, func, literal, select, union_all
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.logs import dropped_lines
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.measurements import measurements
from warpfold.app.tables.service import counters, uncounted_jobs


class Name(StrEnum):
    """The names of counters, with their labels."""

    BATCHES_ENDED = "batches_ended"  # status
    JOBS_ENDED = "jobs_ended"  # kind, status, reason
    JOB_WAIT = "job_wait"  # kind, bucket: jobs whose wait fell into it
    JOB_WAIT_SECONDS = "job_wait_seconds"  # kind
    JOB_RUN = "job_run"  # kind, bucket
    JOB_RUN_SECONDS = "job_run_seconds"  # kind
    KERNEL_SECONDS = "kernel_seconds"  # host, device, uuid
    ATTEMPTS_LOST = "attempts_lost"  # cause
    LOG_LINES_DROPPED = "log_lines_dropped"  # role


BATCHES_OPEN = "batches_open"
"""Batches whose end is not counted yet. It is no counter, but is read beside them in one statement: together with those
that ended it never shrinks."""

Labels = tuple[tuple[str, str], ...]
"""The names and values of labels, in the order of the names."""


@dataclass(frozen=True, slots=True)
class Count:
    """The value of one counter."""

    name: str
    labels: Mapping[str, str]
    value: float


def labelled(**labels: str) -> Labels:
    """`labels` as a key."""
    return tuple(sorted(labels.items()))


def add(connection: Connection, amounts: Mapping[tuple[Name, Labels], float]) -> None:
    """Add to counters in the transaction of the event itself, so that the event counts once or not at all."""
    if not amounts:
        return
    rows = [
        {"name": name.value, "labels": dict(labels), "value": amount}
        for (name, labels), amount in sorted(amounts.items())  # in one order for all, so that they cannot deadlock
    ]
    added = upsert(counters).values(rows)
    connection.execute(
        added.on_conflict_do_update(
            index_elements=["name", "labels"], set_={"value": counters.c.value + added.excluded.value}
        )
    )


_OPEN = select(
    literal(BATCHES_OPEN).label("name"), literal({}, JSONB).label("labels"), cast(func.count(), Double).label("value")
).where(batches.c.settled_at.is_(None))
_ALL = union_all(select(counters.c.name, counters.c.labels, counters.c.value), _OPEN)


def read(connection: Connection) -> Sequence[Count]:
    """All counters: a few for each kind of job and each GPU; and `BATCHES_OPEN`."""
    return [Count(row.name, row.labels, row.value) for row in connection.execute(_ALL)]


BOUNDS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3600.0)
"""The upper bounds of the classes of durations, in seconds; a longer duration falls into one class more. To change
the bounds orphans what was counted."""


def bound_of(seconds: float) -> str:
    """The bound that a duration falls under, as Prometheus names it in `le`."""
    index = bisect_left(BOUNDS_S, seconds)
    return "+Inf" if index == len(BOUNDS_S) else str(BOUNDS_S[index])


ROLES = ("api", "dispatcher", "worker")
"""The roles whose lost lines are counted. A child and `warpfold serve` only write a line about them once they can
again."""


class DroppedLines:
    """The lines that this process dropped, and how many of them Postgres knows of."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._known = 0

    def uncounted(self) -> int:
        """How many dropped lines Postgres does not know of."""
        return max(0, dropped_lines() - self._known)

    def count(self, connection: Connection, lines: int) -> None:
        """Add so many to the counter of this role; `counted` is to follow the commit."""
        add(connection, {(Name.LOG_LINES_DROPPED, labelled(role=self._role)): float(lines)})

    def counted(self, lines: int) -> None:
        """Note that Postgres knows of so many more."""
        self._known += lines


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
    """Add the kernels' time of the runs that count, which leaves out warm-ups and the repetitions inside of a
    sample."""
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
