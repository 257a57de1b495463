"""HTTP of the administration: users, tokens, quotas and workers, which only admins may change."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from warpfold.app.admin import service
from warpfold.app.admin.own_access import BothHold, TokenId
from warpfold.app.admin.views import (
    LimitsView,
    NewToken,
    Quotas,
    QuotaView,
    RemovalView,
    TokenRequest,
    Tokens,
    TokenView,
    UserRequest,
    Users,
    UserView,
)
from warpfold.app.auth import access_tokens, users
from warpfold.app.auth.users import UserName
from warpfold.app.http.bearer import Admin, User
from warpfold.app.http.context import Using
from warpfold.app.http.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    UnsupportedMedia,
)
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRoute

router = APIRouter(prefix="/v1", tags=["administration"], route_class=JsonRoute)

_BODY = (BadRequest, Forbidden, TooLarge, UnsupportedMedia, Invalid)
_Worker = Annotated[str, Path(max_length=128, pattern=r"^[^\x00]+$", description="The id of a worker, as host:slot.")]


@router.get("/users", summary="List users", responses=answers(Forbidden))
async def show_users(admin: Admin, context: Using) -> Users:
    """List all users with their roles. Only admins may."""
    return Users(items=[UserView.of(user) for user in await context.database.read(users.list_users)])


@router.put("/users/{name}", summary="Create a user, or change a role", responses=answers(*_BODY, Conflict))
async def put_user(name: Annotated[UserName, Path()], body: UserRequest, admin: Admin, context: Using) -> UserView:
    """Give a user a role, which is in force at once: viewers look, users submit, admins do everything. Only admins
    may."""
    return UserView.of(await service.put_user(context, admin, name, body.role))


@router.get(
    "/users/{name}/removal",
    summary="Show what the removal of a user would do",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def show_removal(name: Annotated[UserName, Path()], admin: Admin, context: Using) -> RemovalView:
    """Show what would become of a user's jobs, arrays and tokens if the user were removed. Nothing is removed. Only
    admins may."""
    return RemovalView.of(await service.removal_of(context, name))


@router.delete(
    "/users/{name}",
    summary="Remove a user",
    responses=answers(Forbidden, NotFound, Conflict, Invalid),
)
async def remove_user(name: Annotated[UserName, Path()], admin: Admin, context: Using) -> RemovalView:
    """Remove a user, and show what became of what was theirs. The tokens and sessions of the user are useless at once,
    waiting and running jobs are cancelled, and uploaded arrays are deleted. Jobs that have ended stay with their
    results until their time is over, and are seen by whoever saw them; until then nobody else can have the name. Only
    admins may, and not themselves."""
    return RemovalView.of(await service.remove_user(context, admin, name))


@router.get("/tokens", summary="List tokens", responses=answers(Forbidden))
async def show_tokens(admin: Admin, context: Using) -> Tokens:
    """List all tokens, the revoked among them, without their secrets. Only admins may."""
    return Tokens(items=[TokenView.of(token) for token in await context.database.read(access_tokens.list_tokens)])


@router.post("/tokens", status_code=201, summary="Make a token", responses=answers(*_BODY, Conflict))
async def make_token(body: TokenRequest, admin: Admin, context: Using, response: Response) -> NewToken:
    """Make a token for a user; a new name creates the user. Only this answer shows the secret. Only admins may."""
    made = await service.issue_token(context, admin, body)
    response.headers["Cache-Control"] = "no-store"
    return NewToken.of_issued(made)


@router.post(
    "/tokens/{token_id}/rotate",
    status_code=201,
    summary="Rotate a token",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def rotate_token(
    token_id: TokenId, admin: Admin, context: Using, response: Response, both_hold_hours: BothHold = 0.0
) -> NewToken:
    """Give a token a new secret; its lifetime begins anew. Unless `both_hold_hours` says otherwise, the old secret is
    useless at once. Only this answer shows the secret. Only admins may."""
    issued = await service.rotate_token(context, admin, both_hold_hours, token_id=token_id)
    if issued is None:
        raise NotFound(f"There is no token {token_id} in force.")
    response.headers["Cache-Control"] = "no-store"
    return NewToken.of_issued(issued)


@router.delete(
    "/tokens/{token_id}", status_code=204, summary="Remove a token", responses=answers(Forbidden, NotFound, Invalid)
)
async def revoke_token(token_id: TokenId, admin: Admin, context: Using) -> None:
    """Remove a token: from now on it is refused. Lists go on to show when it was removed. Only admins may."""
    await service.revoke_token(context, admin, token_id)


@router.get("/quotas", summary="List quotas", responses=answers())
async def show_quotas(user: User, context: Using) -> Quotas:
    """Show quotas and how much of them is used. Admins see those of all users, others see their own."""
    return Quotas(items=[QuotaView.of(quota) for quota in await service.quotas_for(context, user)])


@router.get("/quotas/{name}", summary="Show the quotas of a user", responses=answers(Forbidden, NotFound, Invalid))
async def show_quota(name: Annotated[UserName, Path()], user: User, context: Using) -> QuotaView:
    """Show a user's quotas and how much of them is used. Only admins may see those of others."""
    return QuotaView.of(await service.quota_of(context, user, name))


@router.put("/quotas/{name}", summary="Set the quotas of a user", responses=answers(*_BODY, NotFound))
async def put_quota(name: Annotated[UserName, Path()], body: LimitsView, admin: Admin, context: Using) -> QuotaView:
    """Set how much of the service a user may use at a time; a limit that is null or left out follows the settings. Only
    admins may."""
    return QuotaView.of(await service.put_limits(context, admin, name, body.limits()))


@router.post(
    "/workers/{worker}/drain",
    status_code=204,
    summary="Drain a worker",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def drain_worker(worker: _Worker, admin: Admin, context: Using) -> None:
    """Let a worker finish the job that it runs and take no more, also after a restart, until it is resumed. Only admins
    may."""
    await service.drain(context, admin, worker)


@router.post(
    "/workers/{worker}/resume",
    status_code=204,
    summary="Resume a worker",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def resume_worker(worker: _Worker, admin: Admin, context: Using) -> None:
    """Let a drained worker take jobs again. Only admins may."""
    await service.resume(context, admin, worker)
