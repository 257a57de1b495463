"""HTTP of webhooks: the deliveries of a job's message, and a user's signing secret."""

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.http.bearer import User
from warpfold.app.http.context import Context, Using
from warpfold.app.http.errors import Forbidden, Invalid, NotFound, no_such_batch, no_such_job
from warpfold.app.http.openapi import answers
from warpfold.app.webhooks import repository
from warpfold.app.webhooks.message import message_id, new_secret
from warpfold.app.webhooks.repository import Deliveries, State


class AttemptView(BaseModel):
    """One attempt to deliver a message."""

    number: int
    started_at: datetime
    finished_at: datetime | None = Field(
        description="When the attempt ended; null while it is under way, or if its sender was lost."
    )
    status_code: int | None = Field(description="The status of the receiver's answer; null if no answer came.")
    error: str | None = Field(description="Why the attempt did not count as delivered; null if it did.")


class DeliveriesView(BaseModel):
    """The webhook of a job or a batch and its deliveries."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "webhook_id": "msg_bad2cde1a3874c34b05bcb4651e4f880",
                    "url": "https://hooks.example.org/warpfold",
                    "state": "pending",
                    "next_attempt_at": "2026-11-21T03:59:31.2+00:00",
                    "delivered_at": None,
                    "attempts": [
                        {
                            "number": 1,
                            "started_at": "2026-11-21T03:59:26.0+00:00",
                            "finished_at": "2026-11-21T03:59:26.1+00:00",
                            "status_code": 503,
                            "error": "the receiver answered 503",
                        }
                    ],
                }
            ]
        }
    )

    webhook_id: str = Field(
        description="The id of the message, the same in every attempt: a receiver that has seen it may ignore "
        "the message."
    )
    url: str
    state: State = Field(
        description="`waiting` for the end of the job or the batch, `pending`, `delivered`, or `given_up`."
    )
    next_attempt_at: datetime | None
    delivered_at: datetime | None
    attempts: list[AttemptView]

    @classmethod
    def of(cls, ended_id: UUID, deliveries: Deliveries) -> "DeliveriesView":
        return cls(
            webhook_id=message_id(ended_id),
            url=deliveries.url,
            state=deliveries.state,
            next_attempt_at=deliveries.next_attempt_at,
            delivered_at=deliveries.delivered_at,
            attempts=[
                AttemptView(
                    number=attempt.number,
                    started_at=attempt.started_at,
                    finished_at=attempt.finished_at,
                    status_code=attempt.status_code,
                    error=attempt.error,
                )
                for attempt in deliveries.attempts
            ],
        )


class NewSecret(BaseModel):
    """A new signing secret."""

    secret: str = Field(description="The secret, which is shown this once: give it to your receivers.")


router = APIRouter(prefix="/v1", tags=["webhooks"])


@router.get(
    "/jobs/{job_id}/deliveries",
    summary="Show the deliveries of a job's webhook",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def show_deliveries(job_id: UUID, user: User, context: Using) -> DeliveriesView:
    """Show the webhook of a job and every attempt to deliver its message. Only its owner and admins may: an address may
    be a secret."""
    owner = await context.database.read(repository.owner_of, job_id, context.viewer(user))
    if owner is None:
        raise no_such_job()
    _check_owner(user, owner, "job")
    return await _deliveries(context, job_id, "job")


@router.get(
    "/batches/{batch_id}/deliveries",
    summary="Show the deliveries of a batch's webhook",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def show_deliveries_of_batch(batch_id: UUID, user: User, context: Using) -> DeliveriesView:
    """Show the webhook of a batch and every attempt to deliver its message. Only its owner and admins may: an address
    may be a secret."""
    owner = await context.database.read(repository.owner_of_batch, batch_id, context.viewer(user))
    if owner is None:
        raise no_such_batch()
    _check_owner(user, owner, "batch")
    return await _deliveries(context, batch_id, "batch")


def _check_owner(user: Principal, owner: tuple[int, str], what: str) -> None:
    owner_id, name = owner
    if owner_id != user.id and not user.is_admin:
        raise Forbidden(f"The {what} belongs to {name}; only its owner and admins may see where it reports.")


async def _deliveries(context: Context, webhook_id: UUID, what: str) -> DeliveriesView:
    deliveries = await context.database.read(repository.deliveries, webhook_id)
    if deliveries is None:
        raise NotFound(f"The {what} was submitted without a webhook.")
    return DeliveriesView.of(webhook_id, deliveries)


@router.post("/webhooks/secret", status_code=201, summary="Make a signing secret", responses=answers(Forbidden))
async def make_secret(user: User, context: Using, response: Response) -> NewSecret:
    """Make a secret that signs the messages of your webhooks from now on, except of webhooks with a secret of their
    own. The new secret replaces your earlier secret, and only this answer shows it."""
    secret = new_secret()
    deed = Deed(user, Action.MAKE_SECRET, owner=user.name)
    await context.database.run(deed.done, repository.put_secret, user.id, secret)
    response.headers["Cache-Control"] = "no-store"
    return NewSecret(secret=secret)
