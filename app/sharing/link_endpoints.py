"""HTTP of read-only links to jobs, for the owners of jobs and admins."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.http.bearer import User
from warpfold.app.http.context import Context, Using
from warpfold.app.http.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, TooLarge, UnsupportedMedia
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRoute
from warpfold.app.sharing import links
from warpfold.app.sharing.endpoints import owned
from warpfold.app.sharing.links import Link, TooManyLinks
from warpfold.app.tables.jobs import jobs

PAGE = "/shared"

router = APIRouter(prefix="/v1/jobs/{job_id}/links", tags=["sharing"], route_class=JsonRoute)


class LinkView(BaseModel):
    """A link to a job, without its secret."""

    id: int
    made_by: str
    created_at: datetime
    expires_at: datetime

    @classmethod
    def of(cls, link: Link) -> "LinkView":
        return cls(id=link.id, made_by=link.made_by, created_at=link.created_at, expires_at=link.expires_at)


class Links(BaseModel):
    """The links to a job that are in force, oldest first."""

    items: list[LinkView]


class LinkRequest(BaseModel):
    """A link to be made."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"expires_in_days": 7}]})

    expires_in_days: float = Field(
        7.0, gt=0, le=links.MOST_DAYS, allow_inf_nan=False, strict=True, description="Days until the link expires."
    )


class NewLink(LinkView):
    """A new link."""

    path: str = Field(description="Its path on this server, which is shown this once: only its hash is kept.")


@router.get("", summary="List the links to a job", responses=answers(Forbidden, NotFound, Invalid))
async def show_links(job_id: UUID, user: User, context: Using) -> Links:
    """List the links to a job that are in force, without their secrets. Only its owner and admins may."""
    return Links(items=[LinkView.of(link) for link in await links_of(context, user, job_id)])


@router.post(
    "",
    status_code=201,
    summary="Make a link to a job",
    responses=answers(BadRequest, Forbidden, NotFound, Conflict, TooLarge, UnsupportedMedia, Invalid),
)
async def make_link(job_id: UUID, body: LinkRequest, user: User, context: Using, response: Response) -> NewLink:
    """Make a link to a job: whoever has the link sees the job's report, with its result and charts, and nothing else,
    without a token, until the link expires or is removed. Only the owner of the job and admins may."""
    link, path = await new_link(context, user, job_id, body.expires_in_days)
    response.headers["Cache-Control"] = "no-store"
    return NewLink(**LinkView.of(link).model_dump(), path=path)


@router.delete(
    "/{link_id}", status_code=204, summary="Remove a link to a job", responses=answers(Forbidden, NotFound, Invalid)
)
async def remove_link(
    job_id: UUID, link_id: Annotated[int, Path(ge=1, le=2**63 - 1)], user: User, context: Using
) -> None:
    """Remove a link to a job: from now on it shows nothing. Only the owner of the job and admins may."""
    await drop_link(context, user, job_id, link_id)


async def links_of(context: Context, user: Principal, job_id: UUID) -> list[Link]:
    """The links to a job of the user's, or to anybody's for an admin. Raises NotFound and Forbidden."""
    await owned(context, user, jobs, job_id)
    return [*await context.database.read(links.of_job, job_id)]


async def new_link(context: Context, user: Principal, job_id: UUID, days: float) -> tuple[Link, str]:
    """Make a link; returns it and its path. Raises NotFound, Forbidden and Conflict."""
    job = await owned(context, user, jobs, job_id)
    deed = Deed(user, Action.MAKE_LINK, str(job_id), job.owner, {"days": days})
    try:
        link, secret = await context.database.run(deed.done, links.make, job_id, user.name, days)
    except TooManyLinks as error:
        raise Conflict(f"{error}.") from None
    return link, f"{PAGE}/{secret}"


async def drop_link(context: Context, user: Principal, job_id: UUID, link_id: int) -> None:
    """Remove a link. Raises NotFound and Forbidden."""
    job = await owned(context, user, jobs, job_id)
    deed = Deed(user, Action.REMOVE_LINK, str(job_id), job.owner, {"link": link_id})
    if not await context.database.run(deed.done, links.remove, job_id, link_id):
        raise NotFound(f"The job has no link {link_id}.")
