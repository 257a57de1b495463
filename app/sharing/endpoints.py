"""HTTP of sharing: with whom a dataset, a job or a batch is shared, and the owner's word about that."""

from typing import Annotated, Self
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints
from sqlalchemy import Table

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.datasets.endpoints import Id
from warpfold.app.http.bearer import User
from warpfold.app.http.context import Context, Using
from warpfold.app.http.errors import (
    BadRequest,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    UnsupportedMedia,
    no_such_batch,
    no_such_job,
)
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRoute
from warpfold.app.sharing import repository
from warpfold.app.sharing.repository import Owned, SharedWith, UnknownUser
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.users import datasets
from warpfold.contract.fields import Listed

_MOST_USERS = 100

router = APIRouter(prefix="/v1", tags=["sharing"], route_class=JsonRoute)


class SharingView(BaseModel):
    """Who sees a thing beside its owner and admins."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"everyone": False, "users": ["bob"]}]})

    everyone: StrictBool = Field(False, description="Whether every user of the service sees it.")
    users: Listed[Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00]*$")]] = Field(
        (), max_length=_MOST_USERS, description="The names of the users who see it in any case."
    )

    @classmethod
    def of(cls, shared: SharedWith) -> Self:
        return cls(everyone=shared.everyone, users=tuple(shared.users))


_READ = answers(Forbidden, NotFound, Invalid)
_CHANGED = answers(BadRequest, Forbidden, NotFound, TooLarge, UnsupportedMedia, Invalid)


@router.get("/datasets/{dataset_id}/sharing", summary="Show who may read an uploaded array", responses=_READ)
async def show_dataset_sharing(dataset_id: Id, user: User, context: Using) -> SharingView:
    """Show with whom your entry of an uploaded array is shared. Only its owner and admins may."""
    return await _show(context, user, datasets, dataset_id)


@router.put("/datasets/{dataset_id}/sharing", summary="Share an uploaded array", responses=_CHANGED)
async def share_dataset(dataset_id: Id, sharing: SharingView, user: User, context: Using) -> SharingView:
    """Share your entry of an uploaded array with these users, and with nobody else; `{}` makes it private. Whoever may
    read an array may download it, look into it and name it in jobs. Jobs that were accepted before keep their input."""
    return await _share(context, user, datasets, dataset_id, sharing)


@router.get("/jobs/{job_id}/sharing", summary="Show who sees a job", responses=_READ)
async def show_job_sharing(job_id: UUID, user: User, context: Using) -> SharingView:
    """Show with whom a job is shared. Only its owner and admins may."""
    return await _show(context, user, jobs, job_id)


@router.put("/jobs/{job_id}/sharing", summary="Share a job", responses=_CHANGED)
async def share_job(job_id: UUID, sharing: SharingView, user: User, context: Using) -> SharingView:
    """Share a job with these users, and with nobody else; `{}` makes it private. Its result, its stored result, its
    events, its measurements and its report are shared with it, and so are the jobs of a preset."""
    return await _share(context, user, jobs, job_id, sharing)


@router.get("/batches/{batch_id}/sharing", summary="Show who sees a batch", responses=_READ)
async def show_batch_sharing(batch_id: UUID, user: User, context: Using) -> SharingView:
    """Show with whom a batch is shared. Only its owner and admins may."""
    return await _show(context, user, batches, batch_id)


@router.put("/batches/{batch_id}/sharing", summary="Share a batch", responses=_CHANGED)
async def share_batch(batch_id: UUID, sharing: SharingView, user: User, context: Using) -> SharingView:
    """Share a batch and all of its jobs with these users, and with nobody else; `{}` makes it private."""
    return await _share(context, user, batches, batch_id, sharing)


async def _show(context: Context, user: Principal, table: Table, identity: UUID | str) -> SharingView:
    thing = await owned(context, user, table, identity)
    return SharingView.of(await context.database.read(repository.shared, thing, context.viewer(user)))


async def _share(
    context: Context, user: Principal, table: Table, identity: UUID | str, wanted: SharingView
) -> SharingView:
    thing = await owned(context, user, table, identity)
    try:
        shared = SharedWith(wanted.everyone, tuple(wanted.users))
        details = {"of": table.name, "everyone": shared.everyone, "users": list(shared.users)}
        deed = Deed(user, Action.SHARE, str(identity), thing.owner, details)
        return SharingView.of(await context.database.run(deed.done, repository.share, thing, shared))
    except UnknownUser as error:
        raise Invalid.of(f"users.{error.index}", "there is no user of this name") from None


async def owned(context: Context, user: Principal, table: Table, identity: UUID | str) -> Owned:
    """The thing, which belongs to the user, or to anybody for an admin. Raises NotFound and Forbidden."""
    thing = await context.database.read(repository.owned, table, identity, context.viewer(user))
    if thing is None:
        if table is datasets:
            raise NotFound("There is no dataset with this id that you may read, or it was deleted.")
        raise no_such_job() if table is jobs else no_such_batch()
    if thing.owner_id != user.id and not user.is_admin:
        raise Forbidden(f"It belongs to {thing.owner}; only its owner and admins may see and say who sees it.")
    return thing
