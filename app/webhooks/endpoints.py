"""HTTP of webhooks: how a delivery goes, and a user's secret."""

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.http.bearer import User
from warpfold.app.http.context import Using
from warpfold.app.http.errors import Forbidden, Invalid, NotFound, no_such_job
from warpfold.app.http.openapi import answers
from warpfold.app.webhooks import repository
from warpfold.app.webhooks.message import message_id, new_secret
from warpfold.app.webhooks.repository import Deliveries, State


class AttemptView(BaseModel):
    """One attempt to deliver."""

    number: int
    started_at: datetime
    finished_at: datetime | None = Field(description="null: under way, or the sender was lost with it")
    status_code: int | None = Field(description="of the receiver's answer, if there was one")
    error: str | None = Field(description="why it did not count as delivered")


class DeliveriesView(BaseModel):
    """A job's webhook."""

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

    webhook_id: str = Field(description="the same in every attempt: a receiver that has seen it needs nothing more")
    url: str
    state: State = Field(description="waiting for the job's end, pending, delivered, given_up")
    next_attempt_at: datetime | None
    delivered_at: datetime | None
    attempts: list[AttemptView]

    @classmethod
    def of(cls, job_id: UUID, found: Deliveries) -> "DeliveriesView":
        return cls(
            webhook_id=message_id(job_id),
            url=found.url,
            state=found.state,
            next_attempt_at=found.next_attempt_at,
            delivered_at=found.delivered_at,
            attempts=[
                AttemptView(
                    number=one.number,
                    started_at=one.started_at,
                    finished_at=one.finished_at,
                    status_code=one.status_code,
                    error=one.error,
                )
                for one in found.attempts
            ],
        )


class NewSecret(BaseModel):
    """A secret that was made just now."""

    secret: str = Field(description="shown this once; give it to your receivers")


router = APIRouter(prefix="/v1", tags=["webhooks"])


@router.get(
    "/jobs/{job_id}/deliveries",
    summary="Deliveries of a job's webhook",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def show_deliveries(job_id: UUID, user: User, context: Using) -> DeliveriesView:
    """The webhook of a job and every attempt to deliver it. For its owner and admins: an address may be a secret."""
    owner = await context.database.read(repository.owner_of, job_id)
    if owner is None:
        raise no_such_job()
    owner_id, name = owner
    if owner_id != user.id and not user.is_admin:
        raise Forbidden(f"The job belongs to {name}; only its owner and admins may see where it reports.")
    found = await context.database.read(repository.deliveries, job_id)
    if found is None:
        raise NotFound("The job was submitted without a webhook.")
    return DeliveriesView.of(job_id, found)


@router.post("/webhooks/secret", status_code=201, summary="Make a signing secret", responses=answers(Forbidden))
async def make_secret(user: User, context: Using, response: Response) -> NewSecret:
    """A secret that your webhooks are signed with from now on, but those of jobs that bring their own. It replaces the
    one before, and is in this answer and nowhere else."""
    secret = new_secret()
    await context.database.run(repository.put_secret, user.id, secret)
    response.headers["Cache-Control"] = "no-store"
    return NewSecret(secret=secret)
