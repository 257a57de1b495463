"""SQL of webhooks: stored with a job or a batch, claimed by a sender, noted as delivered or to be tried again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from sqlalchemy import Connection, Table, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from warpfold.app.auth.visibility import Viewer, visible
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.users import users
from warpfold.app.tables.webhooks import webhook_attempts, webhook_secrets, webhooks
from warpfold.contract.batches import status_of_ended

_MOST_OF_AN_ERROR = 500


class State(StrEnum):
    """The state of a webhook."""

    WAITING = "waiting"
    PENDING = "pending"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Ended:
    """The part of a job that its message holds: it never changes once the job has ended."""

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
class EndedBatch:
    """The part of a batch that its message holds: it never changes once the counts of the batch are kept."""

    id: UUID
    name: str
    owner: str
    tags: Mapping[str, str]
    count: int
    succeeded: int
    failed: int
    cancelled: int
    cancel_requested: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime

    @property
    def status(self) -> str:
        return status_of_ended(self.failed, self.cancelled, cancel_requested=self.cancel_requested).value


@dataclass(frozen=True, slots=True)
class Claimed:
    """One attempt, which the sender that claimed it makes, and nobody else."""

    number: int
    url: str
    secret: str
    owner_id: int
    ended: Ended | EndedBatch


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
    """The webhook of a job or a batch and every attempt to deliver it."""

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


_ENDED_BATCH = (
    select(
        batches.c.id,
        batches.c.name,
        users.c.name.label("owner"),
        batches.c.tags,
        batches.c.count,
        batches.c.succeeded,
        batches.c.failed,
        batches.c.cancelled,
        batches.c.cancel_requested_at.is_not(None).label("cancel_requested"),
        batches.c.created_at,
        batches.c.started_at,
        batches.c.finished_at,
    )
    .select_from(batches)
    .join(users, users.c.id == batches.c.owner_id)
)
# The end of a batch is sent once its counts are kept, because the message holds them.
_OF = webhooks.outerjoin(jobs, jobs.c.id == webhooks.c.job_id).outerjoin(batches, batches.c.id == webhooks.c.batch_id)
_OWNER_ID = func.coalesce(jobs.c.owner_id, batches.c.owner_id)
_ENDED_AT = func.coalesce(jobs.c.finished_at, batches.c.settled_at)


def register(connection: Connection, job_id: UUID, owner_id: int, url: str, secret: str | None) -> bool:
    """Store a new job's webhook. False if it has no secret to sign with: neither one of its own nor its owner's."""
    if secret is None and not has_secret(connection, owner_id):
        return False
    connection.execute(insert(webhooks).values(id=job_id, job_id=job_id, url=url, secret=secret))
    return True


def register_batch(connection: Connection, batch_id: UUID, owner_id: int, url: str, secret: str | None) -> bool:
    """Register the webhook of a new batch. False if the owner has no secret and none is given."""
    if secret is None and not has_secret(connection, owner_id):
        return False
    connection.execute(insert(webhooks).values(id=batch_id, batch_id=batch_id, url=url, secret=secret))
    return True


def has_secret(connection: Connection, owner_id: int) -> bool:
    """Whether a user has a secret that signs webhooks without one."""
    owners = select(webhook_secrets.c.user_id).where(webhook_secrets.c.user_id == owner_id)
    return connection.execute(owners).one_or_none() is not None


def put_secret(connection: Connection, user_id: int, secret: str) -> bool:
    """Sign a user's webhooks with another secret from now on, but those of jobs that brought their own. True: it is
    always another one."""
    new = {"secret": secret, "created_at": func.now()}
    connection.execute(
        upsert(webhook_secrets)
        .values(user_id=user_id, **new)
        .on_conflict_do_update(index_elements=["user_id"], set_=new)
    )
    return True


def claim(connection: Connection, not_of: Collection[int], lease_s: float) -> Claimed | None:
    """Begin the attempt that is due first, of an owner who is not among `not_of`; None if nothing is due.

    The number of an attempt is given out once. Its sender has `lease_s` seconds before the next attempt is due.
    """
    due = (
        select(webhooks.c.id, _OWNER_ID.label("owner_id"))
        .select_from(_OF)
        .where(webhooks.c.due_at <= func.now(), _ENDED_AT.is_not(None), _OWNER_ID.not_in(not_of))
        .order_by(webhooks.c.due_at)
        .limit(1)
        .with_for_update(of=webhooks, skip_locked=True)
        .cte("due")
    )
    row = connection.execute(
        update(webhooks)
        .where(webhooks.c.id == due.c.id)
        .values(attempts=webhooks.c.attempts + 1, due_at=func.now() + timedelta(seconds=lease_s))
        .returning(
            webhooks.c.id,
            webhooks.c.batch_id,
            webhooks.c.attempts,
            webhooks.c.url,
            webhooks.c.secret,
            due.c.owner_id,
        )
    ).one_or_none()
    if row is None:
        return None
    connection.execute(insert(webhook_attempts).values(webhook_id=row.id, number=row.attempts))
    owners = select(webhook_secrets.c.secret).where(webhook_secrets.c.user_id == row.owner_id)
    secret = row.secret or connection.execute(owners).scalar_one()
    ended: Ended | EndedBatch
    if row.batch_id is None:
        ended = Ended(**connection.execute(_ENDED.where(jobs.c.id == row.id)).mappings().one())
    else:
        ended = EndedBatch(**connection.execute(_ENDED_BATCH.where(batches.c.id == row.id)).mappings().one())
    return Claimed(row.attempts, row.url, secret, row.owner_id, ended)


def delivered(connection: Connection, claimed: Claimed, status_code: int) -> None:
    """Note that the receiver has the message, even if the attempt took so long that another began."""
    _finish(connection, claimed, status_code, None)
    connection.execute(
        update(webhooks)
        .where(webhooks.c.id == claimed.ended.id, webhooks.c.delivered_at.is_(None))
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
            webhooks.c.id == claimed.ended.id,
            webhooks.c.attempts == claimed.number,
            webhooks.c.delivered_at.is_(None),
        )
        .values(due_at=due)
    )


def owner_of(connection: Connection, job_id: UUID, viewer: Viewer) -> tuple[int, str] | None:
    """The id and the name of a job's owner; None if the viewer sees no such job."""
    return _owner(connection, jobs, job_id, viewer)


def owner_of_batch(connection: Connection, batch_id: UUID, viewer: Viewer) -> tuple[int, str] | None:
    """The id and the name of a batch's owner; None if the viewer sees no such batch."""
    return _owner(connection, batches, batch_id, viewer)


def _owner(connection: Connection, of: Table, identity: UUID, viewer: Viewer) -> tuple[int, str] | None:
    owner = select(users.c.id, users.c.name).join(of, users.c.id == of.c.owner_id)
    owner = owner.where(of.c.id == identity, visible(of, viewer))
    row = connection.execute(owner).one_or_none()
    return None if row is None else (row.id, row.name)


def deliveries(connection: Connection, webhook_id: UUID) -> Deliveries | None:
    """The webhook of a job or a batch with its attempts, in order; None without a webhook."""
    row = connection.execute(
        select(webhooks.c.url, webhooks.c.due_at, webhooks.c.delivered_at, _ENDED_AT.label("ended_at"))
        .select_from(_OF)
        .where(webhooks.c.id == webhook_id)
    ).one_or_none()
    if row is None:
        return None
    if row.delivered_at is not None:
        state = State.DELIVERED
    elif row.due_at is None:
        state = State.GIVEN_UP
    else:
        state = State.WAITING if row.ended_at is None else State.PENDING
    made = connection.execute(
        select(
            webhook_attempts.c.number,
            webhook_attempts.c.started_at,
            webhook_attempts.c.finished_at,
            webhook_attempts.c.status_code,
            webhook_attempts.c.error,
        )
        .where(webhook_attempts.c.webhook_id == webhook_id)
        .order_by(webhook_attempts.c.number)
    )
    next_at = row.due_at if state is State.PENDING else None
    return Deliveries(row.url, state, next_at, row.delivered_at, [Attempt(*attempt) for attempt in made])


def _finish(connection: Connection, claimed: Claimed, status_code: int | None, error: str | None) -> None:
    connection.execute(
        update(webhook_attempts)
        .where(webhook_attempts.c.webhook_id == claimed.ended.id, webhook_attempts.c.number == claimed.number)
        .values(finished_at=func.now(), status_code=status_code, error=error)
    )
