"""SQL of webhooks: stored with a job, claimed by a sender, noted as delivered or to be tried again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.users import users
from warpfold.app.tables.webhooks import webhook_attempts, webhook_secrets, webhooks

_MOST_OF_AN_ERROR = 500


class State(StrEnum):
    """The state of a webhook."""

    WAITING = "waiting"
    PENDING = "pending"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Ended:
    """What a message says of a job: this never changes once the job has ended."""

    id: UUID
    kind: str
    status: str
    owner: str
    tags: Mapping[str, str]
    attempt: int
    reason: str | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class Claimed:
    """One attempt, which the sender that claimed it makes, and nobody else."""

    number: int
    url: str
    secret: str
    owner_id: int
    job: Ended


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt as the list shows it. An attempt without an end is under way, or its sender died."""

    number: int
    started_at: datetime
    finished_at: datetime | None
    status_code: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Deliveries:
    """A job's webhook and every attempt to deliver it."""

    url: str
    state: State
    next_attempt_at: datetime | None
    delivered_at: datetime | None
    attempts: Sequence[Attempt]


_ENDED = (
    select(
        jobs.c.id,
        jobs.c.kind,
        jobs.c.status,
        users.c.name.label("owner"),
        jobs.c.tags,
        jobs.c.attempt,
        jobs.c.reason,
        jobs.c.error,
        jobs.c.created_at,
        jobs.c.started_at,
        jobs.c.finished_at,
    )
    .select_from(jobs)
    .join(users, users.c.id == jobs.c.owner_id)
)


def register(connection: Connection, job_id: UUID, owner_id: int, url: str, secret: str | None) -> bool:
    """Store a new job's webhook. False if it has no secret to sign with: neither one of its own nor its owner's."""
    if secret is None:
        owners = select(webhook_secrets.c.user_id).where(webhook_secrets.c.user_id == owner_id)
        if connection.execute(owners).one_or_none() is None:
            return False
    connection.execute(insert(webhooks).values(job_id=job_id, url=url, secret=secret))
    return True


def put_secret(connection: Connection, user_id: int, secret: str) -> None:
    """Sign a user's webhooks with another secret from now on, but those of jobs that brought their own."""
    new = {"secret": secret, "created_at": func.now()}
    connection.execute(
        upsert(webhook_secrets)
        .values(user_id=user_id, **new)
        .on_conflict_do_update(index_elements=["user_id"], set_=new)
    )


def claim(connection: Connection, not_of: Collection[int], lease_s: float) -> Claimed | None:
    """Begin the attempt that is due first, of an owner who is not among `not_of`; None if nothing is due.

    The number of an attempt is given out once. Whoever claimed it has `lease_s` seconds before the next attempt is due.
    """
    due = (
        select(webhooks.c.job_id)
        .join(jobs, jobs.c.id == webhooks.c.job_id)
        .where(webhooks.c.due_at <= func.now(), jobs.c.finished_at.is_not(None), jobs.c.owner_id.not_in(not_of))
        .order_by(webhooks.c.due_at)
        .limit(1)
        .with_for_update(of=webhooks, skip_locked=True)
        .scalar_subquery()
    )
    row = connection.execute(
        update(webhooks)
        .where(webhooks.c.job_id == due, jobs.c.id == webhooks.c.job_id)
        .values(attempts=webhooks.c.attempts + 1, due_at=func.now() + timedelta(seconds=lease_s))
        .returning(webhooks.c.job_id, webhooks.c.attempts, webhooks.c.url, webhooks.c.secret, jobs.c.owner_id)
    ).one_or_none()
    if row is None:
        return None
    connection.execute(insert(webhook_attempts).values(job_id=row.job_id, number=row.attempts))
    owners = select(webhook_secrets.c.secret).where(webhook_secrets.c.user_id == row.owner_id)
    secret = row.secret or connection.execute(owners).scalar_one()
    job = connection.execute(_ENDED.where(jobs.c.id == row.job_id)).mappings().one()
    return Claimed(row.attempts, row.url, secret, row.owner_id, Ended(**job))


def delivered(connection: Connection, claimed: Claimed, status_code: int) -> None:
    """Note that the receiver has the message, even if the attempt took so long that another began."""
    _finish(connection, claimed, status_code, None)
    connection.execute(
        update(webhooks)
        .where(webhooks.c.job_id == claimed.job.id, webhooks.c.delivered_at.is_(None))
        .values(delivered_at=func.now(), due_at=None)
    )


def failed(
    connection: Connection, claimed: Claimed, status_code: int | None, error: str, again_in_s: float | None
) -> None:
    """Note that the attempt failed: the next is due in `again_in_s` seconds, or with None never."""
    _finish(connection, claimed, status_code, error[:_MOST_OF_AN_ERROR])
    due = None if again_in_s is None else func.now() + timedelta(seconds=again_in_s)
    connection.execute(
        update(webhooks)
        .where(
            webhooks.c.job_id == claimed.job.id,
            webhooks.c.attempts == claimed.number,
            webhooks.c.delivered_at.is_(None),
        )
        .values(due_at=due)
    )


def owner_of(connection: Connection, job_id: UUID) -> tuple[int, str] | None:
    """The id and the name of a job's owner; None if there is no such job."""
    owner = select(users.c.id, users.c.name).join(jobs, users.c.id == jobs.c.owner_id).where(jobs.c.id == job_id)
    row = connection.execute(owner).one_or_none()
    return None if row is None else (row.id, row.name)


def deliveries(connection: Connection, job_id: UUID) -> Deliveries | None:
    """A job's webhook with its attempts, in order; None if it has none."""
    row = connection.execute(
        select(webhooks.c.url, webhooks.c.due_at, webhooks.c.delivered_at, jobs.c.finished_at)
        .join(jobs, jobs.c.id == webhooks.c.job_id)
        .where(webhooks.c.job_id == job_id)
    ).one_or_none()
    if row is None:
        return None
    if row.delivered_at is not None:
        state = State.DELIVERED
    elif row.due_at is None:
        state = State.GIVEN_UP
    else:
        state = State.WAITING if row.finished_at is None else State.PENDING
    made = connection.execute(
        select(
            webhook_attempts.c.number,
            webhook_attempts.c.started_at,
            webhook_attempts.c.finished_at,
            webhook_attempts.c.status_code,
            webhook_attempts.c.error,
        )
        .where(webhook_attempts.c.job_id == job_id)
        .order_by(webhook_attempts.c.number)
    )
    next_at = row.due_at if state is State.PENDING else None
    return Deliveries(row.url, state, next_at, row.delivered_at, [Attempt(*attempt) for attempt in made])


def _finish(connection: Connection, claimed: Claimed, status_code: int | None, error: str | None) -> None:
    connection.execute(
        update(webhook_attempts)
        .where(webhook_attempts.c.job_id == claimed.job.id, webhook_attempts.c.number == claimed.number)
        .values(finished_at=func.now(), status_code=status_code, error=error)
    )
