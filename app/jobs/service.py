"""The work of requests about jobs, one function for each request, in terms of specs, users and units of SQL."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

import structlog
from sqlalchemy import Connection
from structlog.typing import FilteringBoundLogger

from warpfold.app.auth import audit
from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.auth.visibility import Viewer
from warpfold.app.http.context import Context
from warpfold.app.http.errors import Conflict
from warpfold.app.http.middleware import current_request_id
from warpfold.app.jobs import accept, editing, outcome, placing, presets, store, transitions
from warpfold.app.jobs.accept import Key
from warpfold.app.jobs.editing import JobEdit
from warpfold.app.jobs.inputs import inputs_of
from warpfold.app.jobs.store import Job, JobVersion
from warpfold.app.jobs.workers import Waiting, places, waiting_for
from warpfold.app.notifications import Watch
from warpfold.app.quotas.quota import Limits
from warpfold.app.tables.jobs import NONE
from warpfold.contract.jobs import JobSpec
from warpfold.contract.kinds.spec import Task
from warpfold.contract.states import Status

log: FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class UnservedJob:
    """A job that no slot takes at present, and why; `name` is its name within its preset."""

    name: str | None
    waiting: Waiting


async def unable(context: Context, spec: JobSpec) -> tuple[UnservedJob, ...]:
    """The jobs of `spec` that would wait because no slot takes them."""
    parts: Sequence[tuple[str | None, Task]] = spec.parts()
    if not parts and isinstance(spec, Task):
        parts = [(None, spec)]
    slots = await context.database.read(places)
    reasons = [(name, waiting_for(part.needs(), slots)) for name, part in parts]
    return tuple(UnservedJob(name, why) for name, why in reasons if why is not None)


async def submit(
    context: Context,
    user: Principal,
    spec: JobSpec,
    key: Key | None,
    job_id: UUID | None = None,
    *,
    secret: UUID | None = None,
) -> Job:
    """Accept a job, as `job_id` if it is given, or find the job that was accepted with the same key, which has another
    id. The notification of the outcome carries `secret`. Touches nothing but Postgres."""
    accept.check(spec, context.settings)
    accept.check_uploads(spec, context.settings, user)
    with context.tracing.span("submit", kind=spec.kind) as span:
        arguments = spec, user, current_request_id(), span.traceparent, job_id
        shared = context.settings.share_jobs
        if accept.reads_files(spec):  # whose sizes may have to come from a disk
            new = await asyncio.to_thread(
                lambda: accept.job_of(*arguments, secret=secret, folders=context.settings.folders(), shared=shared)
            )
        else:
            new = accept.job_of(*arguments, secret=secret, shared=shared)
        children, inputs = accept.children_of(spec, new, user), inputs_of(spec)
        limits = Limits.of(context.settings)
        job = None
        if accept.at_once(new, children, inputs, spec.webhook):
            job = await context.database.quickly(accept.submit_at_once, new, key, limits)
        if job is None:
            job = await context.database.run(
                accept.submit,
                new,
                key,
                limits,
                children=children,
                inputs=inputs,
                viewer=context.viewer(user),
                webhook=spec.webhook,
            )
        span.note(job=str(job.id), new=job.id == new.id)
    if job.id == new.id:
        log.info("submitted", job=str(job.id), kind=spec.kind, owner=user.name, children=len(children))
        if job.slot is not None:
            log.info("handed over", job=str(job.id), attempt=job.attempt, worker=job.slot)
    return job


async def placed(context: Context, accepted: Job) -> Job:
    """A job that was just accepted, with its place in the queue."""
    if accepted.waiter is None:
        return accepted
    if accepted.slot is not None:  # it was idle
        return replace(accepted, queue_position=1)
    [job] = await placing.placed(context, [accepted])
    return job


async def get(context: Context, user: Principal, job_id: UUID) -> Job:
    """Read a job that the user sees. Raises NotFound."""
    job = await context.database.read(store.existing, job_id, context.viewer(user))
    if job.waiter is None:
        return job
    estimated = await placing.estimates(context, [job.waiter])
    return job.in_turn(estimated[job.id])


async def stamp(context: Context, user: Principal, job_id: UUID) -> JobVersion:
    """Read the stamp of a job that the user sees. Raises NotFound."""
    stamp_of_job = await context.database.read(store.stamp, job_id, context.viewer(user))
    if stamp_of_job.waiter is None:
        return stamp_of_job
    estimated = await placing.estimates(context, [stamp_of_job.waiter])
    return replace(stamp_of_job, queue_position=estimated[job_id].place, waiter=None)


async def hold(
    context: Context,
    user: Principal,
    job_id: UUID,
    seconds: float,
    enough: Callable[[JobVersion], bool],
    *,
    gone: Callable[[], Awaitable[bool]],
) -> JobVersion:
    """Wait until `enough` is true of the job's stamp, the time is over, or the client is `gone`; returns the last
    stamp."""
    until = time.monotonic() + seconds
    with context.notifications.watch(job_id) as watch:
        while True:
            seen = await stamp(context, user, job_id)
            left = until - time.monotonic()
            if enough(seen) or left <= 0 or await gone():
                return seen
            await watch.wait(left)


async def submit_and_wait(
    context: Context,
    user: Principal,
    spec: JobSpec,
    key: Key | None,
    job_id: UUID,
    *,
    seconds: float,
    gone: Callable[[], Awaitable[bool]],
) -> Job:
    """Accept a job as `job_id`, or find the one that was accepted with the same key, and wait until it has ended, the
    time is over, or the client is `gone`; returns the job as it is then.

    A job that is new is watched before it is accepted, so that nothing is read before its end.
    """
    until = time.monotonic() + seconds
    secret = uuid4()
    with context.notifications.watch(job_id, for_end=True, secret=secret) as watch:
        job = await submit(context, user, spec, key, job_id, secret=secret)
        if job.id == job_id:
            return await _ended(context, user, job, until, watch, gone=gone)
    if job.status.terminal:
        return job
    with context.notifications.watch(job.id, for_end=True) as watch:
        watch.tell()  # it may have ended before it was watched
        return await _ended(context, user, job, until, watch, gone=gone)


async def _ended(
    context: Context, user: Principal, accepted: Job, until: float, watch: Watch, *, gone: Callable[[], Awaitable[bool]]
) -> Job:
    while (left := until - time.monotonic()) > 0:
        await watch.wait(left)
        if watch.outcome is not None and accepted.needs != NONE:
            return store.with_outcome(accepted, outcome.values_of(watch.outcome))
        read = context.database.quickly if accepted.needs != NONE else context.database.read
        job = await read(store.ended, accepted)
        if job is not None:
            return job
        if await gone():
            break
    return await get(context, user, accepted.id)


async def cancel(context: Context, user: Principal, job_id: UUID) -> Job:
    """Ask for a job's end. Raises NotFound, Forbidden, or Conflict if it has ended otherwise."""
    return await context.database.run(_cancel, user, context.viewer(user), job_id)


def _cancel(connection: Connection, user: Principal, viewer: Viewer, job_id: UUID) -> Job:
    job = editing.owned(connection, user, viewer, job_id, "cancel")
    if not job.status.terminal and job.cancel_requested_at is None:
        audit.record(connection, Deed(user, Action.CANCEL_JOB, str(job_id), job.owner))
    if job.children:
        presets.cancel(connection, job_id)
    else:
        transitions.request_cancel(connection, job_id)
    job = store.existing(connection, job_id)
    if job.status in (Status.SUCCEEDED, Status.FAILED):
        raise Conflict(f"The job has already {job.status}.", extension={"job_status": job.status.value})
    return job


async def edit(context: Context, user: Principal, job_id: UUID, wanted: JobEdit) -> Job:
    """Change the name, the note or the tags of a job. Raises NotFound, Forbidden and Invalid."""
    return await context.database.run(editing.edit, user, context.viewer(user), job_id, wanted)


async def delete(context: Context, user: Principal, job_id: UUID) -> None:
    """Delete a job that has ended. Raises NotFound, Forbidden and Conflict."""
    limits = Limits.of(context.settings)
    job = await context.database.run(editing.delete, user, context.viewer(user), job_id, limits)
    log.info("deleted", job=str(job_id), owner=job.owner, by=user.name)


async def result(context: Context, user: Principal, job_id: UUID) -> str:
    """The stored JSON of a job's result. Raises NotFound, or Conflict where the job has no result (yet)."""
    job = await get(context, user, job_id)
    if job.result is not None:
        return job.result
    extension: dict[str, object] = {"job_status": job.status.value, "job_reason": job.reason, "job_error": job.error}
    if job.status is Status.FAILED:
        raise Conflict(f"The job failed ({job.reason}): {job.error}", extension=extension)
    if job.status is Status.CANCELLED:
        raise Conflict("The job was cancelled and has no result.", extension=extension)
    raise Conflict(
        f"The job is {job.status}; its result comes with its end.", headers={"Retry-After": "1"}, extension=extension
    )
