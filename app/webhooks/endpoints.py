"""HTTP of webhooks: how a delivery goes, and a user's secret."""

from uuid import UUID

from fastapi import APIRouter, Response

from warpfold.app.http.bearer import User
from warpfold.app.http.context import Using
from warpfold.app.http.errors import Forbidden, Invalid, NotFound
from warpfold.app.http.openapi import answers
from warpfold.app.jobs import service as jobs
from warpfold.app.webhooks import repository
from warpfold.app.webhooks.message import new_secret
from warpfold.app.webhooks.views import DeliveriesView, NewSecret

router = APIRouter(prefix="/v1", tags=["webhooks"])


@router.get(
    "/jobs/{job_id}/deliveries",
    summary="Deliveries of a job's webhook",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def show_deliveries(job_id: UUID, user: User, context: Using) -> DeliveriesView:
    """The webhook of a job and every attempt to deliver it. For its owner and admins: an address may be a secret."""
    job = await jobs.get(context, job_id)
    if job.owner_id != user.id and not user.is_admin:
        raise Forbidden(f"The job belongs to {job.owner}; only its owner and admins may see where it reports.")
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
