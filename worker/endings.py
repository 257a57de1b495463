"""Stores the end of an attempt and traces it: its spans are the run and, within the run, preparing, loading, kernels
and the points of a benchmark. Here is the `Place`, too, which all code that runs attempts in a slot shares.
"""

import errno
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import StatementError
from structlog.contextvars import bound_contextvars
from structlog.typing import FilteringBoundLogger

from warpfold.app.artefacts.repository import OverQuota, keep
from warpfold.app.artefacts.store import ArtefactName, ArtefactStore
from warpfold.app.config import Settings
from warpfold.app.db import DATABASE_LOST, BlockingDatabase
from warpfold.app.jobs import leases, losses
from warpfold.app.jobs.attempt import Failure, Lease, Success
from warpfold.app.tracing.tracing import NoTracing, Tracing
from warpfold.contract.measurement import Measurement
from warpfold.contract.states import Loss, Reason
from warpfold.worker.failures import incident
from warpfold.worker.gpu_lock import GpuTurn
from warpfold.worker.lease_exchange import Died, EndCause, Ending, Hung
from warpfold.worker.points import Span
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop

log: FilteringBoundLogger = structlog.get_logger()

P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE_S = 0.5


@dataclass(frozen=True)
class Place:
    """The place where attempts run: a worker, its slot, and the connections and settings that both need."""

    worker: str
    slot: Slot
    turn: GpuTurn
    database: BlockingDatabase
    settings: Settings
    stop: Stop
    show: Callable[[UUID | None], None] = lambda job_id: None
    """Called with the id of the job that runs, or with None when no job runs."""
    turned: Callable[[], None] = lambda: None
    """Called by every loop that serves the slot, each time around: a worker whose loop stands still is not alive."""
    tracing: Tracing = field(default_factory=NoTracing)


def store(place: Place, lease: Lease, ending: Ending, measured: Sequence[Measurement] = ()) -> None:
    """Store how the attempt ended and, if it did not come to its end, the points that it had measured. All of these
    writes are guarded by the lease and safe to repeat."""
    with bound_contextvars(**lease.log_fields):
        _store(place, lease, ending, measured)


def _store(place: Place, lease: Lease, ending: Ending, measured: Sequence[Measurement]) -> None:
    most = place.settings.max_losses
    if not isinstance(ending, Success):
        _forget(place, lease)
    match ending:
        case Success() as success:
            _store_success(place, lease, success)
        case Failure(reason, error):
            patiently(place, leases.fail, lease, reason, error, measured)
            log.info("failed", reason=reason.value, error=error)
        case EndCause.TIMEOUT:
            sentence = f"It ran longer than its time-out of {lease.timeout_s:g} s."
            patiently(place, leases.fail, lease, Reason.TIMEOUT, sentence, measured)
            log.info("timed out")
        case EndCause.CANCELLED:
            patiently(place, leases.cancelled, lease, measured)
            log.info("cancelled")
        case EndCause():
            log.warning("abandoned: the lease is gone")
        case Died(exit_code) if exit_code == -signal.SIGBUS:
            # The operating system sends this signal to a process whose memory-mapped file became shorter.
            sentence = "The file was cut short while it was read."
            patiently(place, leases.fail, lease, Reason.INVALID_INPUT, sentence)
            log.warning("bus error")
        case Hung(seconds):
            patiently(place, losses.lost, lease, most, Loss.CHILD_SILENT)
            log.error("child hung", seconds=seconds)
        case Died(exit_code):
            patiently(place, losses.lost, lease, most)
            log.error("child died", exit_code=exit_code)


def store_together(place: Place, succeeded: Sequence[tuple[Lease, Success]]) -> None:
    """Store successes that have no files by one statement, as safely as `store` does."""
    if not succeeded:
        return
    try:
        kept = _until_taken(
            place, partial(place.database.quickly_and_patiently, _PATIENCE_S, leases.succeed, succeeded)
        )
    except DATABASE_LOST:
        raise
    except StatementError:  # Postgres refuses one of the results, so each is stored by itself
        for lease, success in succeeded:
            store(place, lease, success)
        return
    for lease, _ in succeeded:
        log.info("succeeded" if lease.job_id in kept else "result dropped: the lease is gone", **lease.log_fields)


def put_back(place: Place, unfinished: Sequence[tuple[Lease, Sequence[Measurement]]]) -> None:
    """Give the jobs of these attempts back, with the points that each had measured, because the worker stops."""
    if not unfinished:
        return
    for lease, _ in unfinished:
        _forget(place, lease)
    patiently(place, leases.put_back, unfinished, "its worker was stopped")
    for lease, _ in unfinished:
        log.info("put back", **lease.log_fields)


def _store_success(place: Place, lease: Lease, success: Success) -> None:
    kept, dropped = False, "the lease is gone"
    try:
        kept = patiently(place, _succeed, place.settings, lease, success)
    except DATABASE_LOST:
        raise
    except OverQuota as error:
        assert success.stored is not None, "only a stored result has a quota"
        dropped = f"{success.stored.field}: {error}"
        patiently(place, leases.fail, lease, Reason.INVALID_INPUT, dropped)
    except (StatementError, OSError) as error:  # Postgres, the driver or the disk refuses the result
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            dropped = "the result cannot be stored on the disk: it is full"
            patiently(place, leases.fail, lease, Reason.UNAVAILABLE, dropped)
        else:
            dropped = incident(error, lease.job_id, lease.attempt)
            patiently(place, leases.fail, lease, Reason.INTERNAL, dropped)
    if not kept and success.stored is not None:
        _forget(place, lease)
    log.info("succeeded" if kept else f"result dropped: {dropped}")


def _succeed(connection: Connection, settings: Settings, lease: Lease, success: Success) -> bool:
    """End the attempt as succeeded, and keep the stored part of its result, in one transaction. It is as safe to repeat
    as `leases.succeed`. Raises OverQuota and OSError, after which nothing has happened."""
    if not leases.succeed(connection, [(lease, success)]):
        return False
    if success.stored is not None:
        store = ArtefactStore(settings.artefacts_dir())
        name = ArtefactName(lease.job_id, lease.attempt)
        keep(connection, store, name, success.stored.bytes, settings.dataset_quota_bytes)
    return True


def _forget(place: Place, lease: Lease) -> None:
    """Remove the files of an attempt that came to nothing."""
    ArtefactStore(place.settings.artefacts_dir()).forget(ArtefactName(lease.job_id, lease.attempt))


def patiently(place: Place, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Repeat `work` until Postgres has taken it; after a request to stop, for half a second at most. While Postgres is
    away nobody else can take the job either, so there is no reason to give up a result.
    """
    return _until_taken(place, partial(place.database.run_patiently, _PATIENCE_S, work, *args, **kwargs))


def _until_taken(place: Place, attempt: Callable[[], T]) -> T:
    while True:
        try:
            return attempt()
        except DATABASE_LOST as error:
            if place.stop.requested:
                raise
            log.warning("Postgres cannot be reached; trying on", error=str(error).strip())


def record_attempt(
    tracing: Tracing,
    lease: Lease,
    worker: str,
    ending: Ending,
    *,
    span: Span,
    points: Sequence[tuple[Measurement, Span]],
) -> None:
    """Record an attempt, once its end is stored; `span` is when the child began the job, and when it ended. `points`
    are those of a benchmark."""
    began, ended = span
    attributes: dict[str, str | int] = {"job": str(lease.job_id), "attempt": lease.attempt, "worker": worker}
    run = tracing.past("run", began, ended, parent=lease.traceparent, **attributes, **_how(ending))
    if run is None:
        return
    for point, times in points:
        tracing.past("point", *times, parent=run, strategy=point.strategy, op=point.op, n=point.n)
    _record_stages(tracing, run, began, ending)


def _record_stages(tracing: Tracing, parent: str, since: datetime, ending: Ending) -> None:
    """A reduction may load and add by turns. Its spans are the total time of loading and the total time of adding, one
    after the other."""
    match ending:
        case Success(_, [point]) if point.kind == "reduce":
            prepared = since + timedelta(milliseconds=point.prepare_ms or 0.0)
            loaded = prepared + timedelta(milliseconds=point.load_ms or 0.0)
            added = loaded + timedelta(milliseconds=point.kernel_ms or 0.0)
            if point.prepare_ms:
                tracing.past("prepare", since, prepared, parent=parent, strategy=point.strategy)
            tracing.past("load", prepared, loaded, parent=parent, bytes=point.bytes)
            tracing.past(
                "kernel", loaded, added, parent=parent, strategy=point.strategy, device=point.device, n=point.n
            )


def _how(ending: Ending) -> dict[str, str]:
    match ending:
        case Success():
            return {"ending": "success"}
        case Failure(reason, error):
            return {"ending": "failure", "reason": reason.value, "error": error}
        case Hung():
            return {"ending": "hung"}
        case _:
            return {"ending": getattr(ending, "name", "died").lower()}
