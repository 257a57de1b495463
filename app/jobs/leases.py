"""SQL of the workers: claim an attempt, keep it alive, end it. Every write is guarded by the lease token."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, Connection, Text, Update, cast, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from app.channels import JOB
from app.jobs.changes import change, wake_dispatcher
from app.jobs.models import jobs, workers
from app.jobs.outbox import requeued_values, take_back
from app.jobs.states import EventType, Reason, Status
from app.results.measurement import Measurement
from app.results.models import measurements


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run one attempt of a job.

    `spec` is the stored JSON text: whoever runs the attempt reads it, so that a worker's parent need know no kernels
    and a spec that cannot be read any more fails its job instead of the claim.
    """

    job_id: UUID
    attempt: int
    token: UUID
    spec: str
    timeout_s: float
    queued_ms: float


@dataclass(frozen=True, slots=True)
class Standing:
    """What a worker learns when it renews its lease."""

    held: bool
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker as it reports itself."""

    id: str
    slot: str
    backend: str
    host: str
    pid: int
    version: str
    device: Mapping[str, object] | None


def claim(connection: Connection, job_id: UUID, attempt: int, worker: str, lease_s: float) -> Lease | None:
    """Start an attempt; None if it was claimed, cancelled or superseded meanwhile, and must be dropped."""
    token = uuid4()
    rows = change(
        connection,
        update(jobs)
        .where(jobs.c.id == job_id, jobs.c.attempt == attempt, jobs.c.status == Status.QUEUED)
        .values(
            status=Status.RUNNING,
            slot=worker,
            worker=worker,
            lease_token=token,
            lease_expires_at=func.now() + timedelta(seconds=lease_s),
            started_at=func.now(),
        ),
        EventType.STARTED,
        {"worker": worker, "attempt": attempt},
    )
    if not rows:
        return None
    queued_ms = func.extract("epoch", jobs.c.started_at - jobs.c.created_at) * 1000
    spec = cast(jobs.c.spec, Text)
    row = connection.execute(select(spec, jobs.c.timeout_s, queued_ms).where(jobs.c.id == job_id)).one()
    return Lease(job_id, attempt, token, row[0], row[1], float(row[2]))


def renew(
    connection: Connection, lease: Lease, lease_s: float, progress: tuple[int, int, str] | None = None
) -> Standing:
    """Extend the lease, store progress (done, total, unit) if any is new, and look for a cancel request."""
    values: dict[str, object] = {"lease_expires_at": func.now() + timedelta(seconds=lease_s)}
    if progress is not None:
        done, total, unit = progress
        values |= {
            "progress_done": done,
            "progress_total": total,
            "progress_unit": unit,
            "version": jobs.c.version + 1,
        }
    row = connection.execute(
        update(jobs).where(_held(lease)).values(values).returning(jobs.c.cancel_requested_at, jobs.c.id)
    ).one_or_none()
    if row is None:
        return Standing(held=False, cancel_requested=False)
    if progress is not None:
        connection.execute(select(func.pg_notify(JOB, str(row.id))))
    return Standing(held=True, cancel_requested=row.cancel_requested_at is not None)


def succeed(connection: Connection, lease: Lease, result: Mapping[str, object], points: Sequence[Measurement]) -> bool:
    """Store the result and its measurements. False if the lease is gone: the attempt's outcome no longer counts.

    Safe to run again after a commit whose answer was lost: then nothing changes and the answer is True.
    """
    rows = change(
        connection,
        _ending(lease, Status.SUCCEEDED).values(result=dict(result)),
        EventType.SUCCEEDED,
    )
    if not rows:
        return _ended_by(connection, lease, Status.SUCCEEDED)
    if points:
        connection.execute(insert(measurements), [{"job_id": lease.job_id, **asdict(point)} for point in points])
    wake_dispatcher(connection)
    return True


def fail(connection: Connection, lease: Lease, reason: Reason, error: str) -> bool:
    """End the attempt as failed, with a sentence for people. Repeatable like `succeed`."""
    rows = change(
        connection,
        _ending(lease, Status.FAILED).values(reason=reason, error=error),
        EventType.FAILED,
        {"reason": reason.value},
    )
    wake_dispatcher(connection)
    return bool(rows) or _ended_by(connection, lease, Status.FAILED)


def cancelled(connection: Connection, lease: Lease) -> bool:
    """End the attempt as cancelled. Repeatable like `succeed`."""
    rows = change(connection, _ending(lease, Status.CANCELLED), EventType.CANCELLED)
    wake_dispatcher(connection)
    return bool(rows) or _ended_by(connection, lease, Status.CANCELLED)


def put_back(connection: Connection, lease: Lease, why: str) -> bool:
    """Give an unfinished job back to the queue, without blame: the worker is shutting down.

    If its cancellation was asked for meanwhile, it ends as cancelled instead.
    """
    if _cancel_requested(connection, lease):
        return cancelled(connection, lease)
    rows = change(
        connection, update(jobs).where(_held(lease)).values(requeued_values()), EventType.REQUEUED, {"detail": why}
    )
    wake_dispatcher(connection)
    return bool(rows)


def lost(connection: Connection, lease: Lease, max_losses: int, why: str) -> None:
    """The process that computed the attempt died: requeue it, or fail it after `max_losses` such ends."""
    take_back(connection, _held(lease), max_losses, why)
    wake_dispatcher(connection)


def take_back_from(connection: Connection, worker: str, max_losses: int) -> Sequence[UUID]:
    """For a worker that starts and holds its slot's lock: what ran under its name died with its forerunner."""
    taken = take_back(connection, jobs.c.worker == worker, max_losses, "its worker process died")
    if taken:
        wake_dispatcher(connection)
    return taken


def live_pid(connection: Connection, worker: str) -> int | None:
    """The process that reported itself as `worker` and was not silent for too long since."""
    return connection.execute(
        select(workers.c.pid).where(workers.c.id == worker, workers.c.expires_at > func.now())
    ).scalar_one_or_none()


def report(connection: Connection, worker: WorkerInfo, state: str, job_id: UUID | None, lease_s: float) -> None:
    """Register a worker, or renew its registration for `lease_s` seconds."""
    now = {
        "slot": worker.slot,
        "backend": worker.backend,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "state": state,
        "job_id": job_id,
        "heartbeat_at": func.now(),
        "expires_at": func.now() + timedelta(seconds=lease_s),
    }
    if worker.device is not None:
        now["device"] = dict(worker.device)
    connection.execute(
        upsert(workers).values(id=worker.id, **now).on_conflict_do_update(index_elements=["id"], set_=now)
    )


def _held(lease: Lease) -> ColumnElement[bool]:
    return (
        (jobs.c.id == lease.job_id)
        & (jobs.c.status == Status.RUNNING)
        & (jobs.c.attempt == lease.attempt)
        & (jobs.c.lease_token == lease.token)
    )


def _cancel_requested(connection: Connection, lease: Lease) -> bool:
    # The row stays locked, so that a request cannot slip in before the caller's own change.
    noted = select(jobs.c.cancel_requested_at).where(_held(lease)).with_for_update()
    return connection.execute(noted).scalar_one_or_none() is not None


def _ending(lease: Lease, status: Status) -> Update:
    return update(jobs).where(_held(lease)).values(status=status, lease_expires_at=None, finished_at=func.now())


def _ended_by(connection: Connection, lease: Lease, status: Status) -> bool:
    return (
        connection.execute(
            select(jobs.c.id).where(
                jobs.c.id == lease.job_id, jobs.c.status == status, jobs.c.lease_token == lease.token
            )
        ).one_or_none()
        is not None
    )
