"""What the api does with jobs: each function is one request's work, in terms of specs, users and units of SQL."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

import structlog
from sqlalchemy import Connection
from structlog.typing import FilteringBoundLogger

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.config import Settings
from warpfold.app.datasets import repository as datasets
from warpfold.app.http import middleware as request_ids
from warpfold.app.http.context import Context
from warpfold.app.http.errors import Conflict, Forbidden, Invalid, NotFound, TooMany
from warpfold.app.jobs import presets as families
from warpfold.app.jobs import store as repository
from warpfold.app.jobs.origin import Origin
from warpfold.app.jobs.store import Job, Key, NewJob, Stamp
from warpfold.app.jobs.workers import Waiting, places, waiting_for
from warpfold.app.quotas import repository as quotas
from warpfold.app.quotas.quota import Limits, QuotaName
from warpfold.app.tables.jobs import NONE
from warpfold.app.webhooks import repository as webhooks
from warpfold.app.webhooks.addresses import names_private
from warpfold.contract.jobs import JobSpec, brief_of
from warpfold.contract.kinds.spec import Spec, Task
from warpfold.contract.states import PRIORITIES, Status
from warpfold.contract.webhook import Webhook
from warpfold.kernels.errors import InvalidInput

log: FilteringBoundLogger = structlog.get_logger()

_RETRY_AFTER_FULL_S = 5


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job, and whether this submission made it or an earlier one with the same key."""

    job: Job
    new: bool


def check(spec: JobSpec, settings: Settings) -> None:
    """What depends on this server's settings. Raises InvalidInput naming the field."""
    if spec.webhook is not None and not settings.webhook_allow_private and names_private(spec.webhook.url.host or ""):
        raise InvalidInput("names a private address, which this server does not call", "webhook.url")
    for field, source in spec.sources():
        source.check(field, settings.data_roots, settings.max_values)


@dataclass(frozen=True, slots=True)
class Unable:
    """A job that no slot takes as things are, and why; `name` is what its preset calls it."""

    name: str | None
    waiting: Waiting


async def unable(context: Context, spec: JobSpec) -> tuple[Unable, ...]:
    """Of the jobs that `spec` comes to, those that would wait because no slot takes them."""
    parts: Sequence[tuple[str | None, Task]] = spec.parts()
    if not parts and isinstance(spec, Task):
        parts = [(None, spec)]
    found = await context.database.read(places)
    told = [(name, waiting_for(part.needs(), found)) for name, part in parts]
    return tuple(Unable(name, why) for name, why in told if why is not None)


async def submit(context: Context, user: Principal, spec: JobSpec, key: Key | None) -> Submitted:
    """Accept a job, or find the one that was accepted with the same key. Touches nothing but Postgres."""
    check(spec, context.settings)
    with context.tracing.span("submit", kind=spec.kind) as span:
        new = _new(user.id, spec, Origin(request_ids.current(), span.traceparent))
        children = _children(new, spec)
        limits = Limits.of(context.settings)
        wanted = _Wanted(new, children, _datasets(spec), spec.webhook)
        submitted = await context.database.run(_submit, wanted, user.name, key, limits)
        span.note(job=str(submitted.job.id), new=submitted.new)
    if submitted.new:
        log.info("submitted", job=str(new.id), kind=new.kind, owner=user.name, children=len(children))
    return submitted


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What one submission is to add: a job, its children, the uploaded arrays that they need, whom to tell the end."""

    job: NewJob
    children: tuple[NewJob, ...]
    datasets: Mapping[str, str]
    webhook: Webhook | None


def _new(owner_id: int, spec: Spec, origin: Origin) -> NewJob:
    return NewJob(
        id=uuid4(),
        owner_id=owner_id,
        kind=spec.kind,
        priority=PRIORITIES[spec.priority],
        needs=spec.needs() if isinstance(spec, Task) and not spec.parts() else NONE,
        timeout_s=spec.timeout_s,
        spec=spec.model_dump_json(exclude={"webhook"}),
        spec_brief=brief_of(spec),
        tags=spec.tags,
        request_id=origin.request_id,
        traceparent=origin.traceparent,
    )


def _children(parent: NewJob, spec: JobSpec) -> tuple[NewJob, ...]:
    """The jobs of a preset or of a benchmark on several devices, with its tags and priority."""
    origin = Origin(parent.request_id, parent.traceparent)
    found = []
    for name, part in spec.parts():
        update = {"tags": {**part.tags, **spec.tags}, "priority": spec.priority, "webhook": None}
        task = part.model_copy(update=update)
        found.append(replace(_new(parent.owner_id, task, origin), parent_id=parent.id, name=name))
    return tuple(found)


def _datasets(spec: JobSpec) -> Mapping[str, str]:
    """The ids of the uploaded arrays that a spec needs, with the field that names each."""
    return {source.dataset_id: f"{field}.id" for field, source in spec.sources() if source.dataset_id is not None}


def _submit(connection: Connection, wanted: _Wanted, owner: str, key: Key | None, limits: Limits) -> Submitted:
    new, needed = wanted.job, wanted.datasets
    assert limits.queued is not None, "the settings always say"
    assert limits.high_per_hour is not None, "the settings always say"
    high = limits.high_per_hour
    places = len(wanted.children) or 1
    accepted = repository.accept(connection, new, limits.queued, key, places=places, high_per_hour=high)
    if accepted is not None:
        if needed:
            for missing in datasets.use(connection, needed.keys()):
                raise Invalid.of(needed[missing], "there is no dataset with this id, or it was deleted")
        for child in wanted.children:
            repository.accept(connection, child, high_per_hour=high)
        if wanted.webhook is not None:
            _register(connection, new, wanted.webhook)
        job = Job.queued(new, owner, accepted)
        return Submitted(_found(repository.get(connection, job.id)) if wanted.children else job, new=True)
    kept = None if key is None else repository.find_key(connection, new.owner_id, key.name)
    if kept is None:
        raise _queue_full(connection, new.owner_id, limits, len(wanted.children))
    if key is not None and kept.body_hash != key.body_hash:
        raise Invalid.of("Idempotency-Key", "was used before with another body")
    return Submitted(_found(repository.get(connection, kept.job_id)), new=False)


def _register(connection: Connection, new: NewJob, webhook: Webhook) -> None:
    if not webhooks.register(connection, new.id, new.owner_id, str(webhook.url), webhook.secret):
        raise Invalid.of("webhook.secret", "give one, or make one of your own with POST /v1/webhooks/secret")


def _queue_full(connection: Connection, owner_id: int, limits: Limits, children: int) -> TooMany:
    in_force = quotas.limits_of(connection, owner_id, limits).queued
    told = f"{in_force} of your jobs are in the queue already; your quota allows no more."
    if children:
        told = f"The job comes to {children} jobs; your quota of {in_force} in the queue leaves no room."
    return TooMany(
        told,
        _RETRY_AFTER_FULL_S,
        extension={"quota": QuotaName.QUEUED.value, "limit": in_force},
    )


async def get(context: Context, job_id: UUID) -> Job:
    """A job. Raises NotFound."""
    return _found(await context.database.read(repository.get, job_id))


async def stamp(context: Context, job_id: UUID) -> Stamp:
    """A job's version. Raises NotFound."""
    found = await context.database.read(repository.stamp, job_id)
    if found is None:
        raise _not_found()
    return found


async def hold(
    context: Context,
    job_id: UUID,
    seconds: float,
    enough: Callable[[Stamp], bool],
    gone: Callable[[], Awaitable[bool]],
) -> Stamp:
    """Wait until `enough` says so of the job's stamp, the time is over, or the client is `gone`; the last stamp."""
    until = time.monotonic() + seconds
    with context.notifications.watch(job_id) as watch:
        while True:
            seen = await stamp(context, job_id)
            left = until - time.monotonic()
            if enough(seen) or left <= 0 or await gone():
                return seen
            await watch.wait(left)


async def cancel(context: Context, user: Principal, job_id: UUID) -> Job:
    """Ask for a job's end. Raises NotFound, Forbidden, or Conflict if it has ended otherwise."""
    return await context.database.run(_cancel, user, job_id)


def _cancel(connection: Connection, user: Principal, job_id: UUID) -> Job:
    job = _found(repository.get(connection, job_id))
    if job.owner_id != user.id and not user.is_admin:
        raise Forbidden(f"The job belongs to {job.owner}; only its owner and admins may cancel it.")
    if job.children:
        families.cancel(connection, job_id)
    else:
        repository.request_cancel(connection, job_id)
    job = _found(repository.get(connection, job_id))
    if job.status in (Status.SUCCEEDED, Status.FAILED):
        raise Conflict(f"The job has already {job.status}.", extension={"job_status": job.status.value})
    return job


async def result(context: Context, job_id: UUID) -> str:
    """The stored JSON of a job's result. Raises NotFound, or Conflict where there is none (yet)."""
    job = await get(context, job_id)
    if job.result is not None:
        return job.result
    facts = {"job_status": job.status.value, "job_reason": job.reason, "job_error": job.error}
    if job.status is Status.FAILED:
        raise Conflict(f"The job failed ({job.reason}): {job.error}", extension=facts)
    if job.status is Status.CANCELLED:
        raise Conflict("The job was cancelled and has no result.", extension=facts)
    raise Conflict(
        f"The job is {job.status}; its result comes with its end.", headers={"Retry-After": "1"}, extension=facts
    )


def _found(job: Job | None) -> Job:
    if job is None:
        raise _not_found()
    return job


def _not_found() -> NotFound:
    return NotFound("There is no job with this id, or it was removed when its time was over.")
