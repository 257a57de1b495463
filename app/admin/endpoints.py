"""HTTP of the administration: users, tokens, quotas and workers, which only admins may change; and the caller's own
tokens and sessions, which viewers may change, too."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from warpfold.app.admin import service
from warpfold.app.admin.views import (
    LimitsView,
    NewToken,
    Quotas,
    QuotaView,
    TokenRequest,
    Tokens,
    TokenView,
    UserRequest,
    Users,
    UserView,
)
from warpfold.app.auth import access_tokens, sessions, users
from warpfold.app.auth.access import presented
from warpfold.app.auth.users import UserName
from warpfold.app.http.bearer import Admin, Themselves, User
from warpfold.app.http.context import Using
from warpfold.app.http.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    Unauthorized,
    UnsupportedMedia,
)
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRoute

router = APIRouter(prefix="/v1", tags=["administration"], route_class=JsonRoute)
own_access = APIRouter(prefix="/v1/users/me", tags=["administration"])

_BODY = (BadRequest, Forbidden, TooLarge, UnsupportedMedia, Invalid)
_Worker = Annotated[str, Path(max_length=128, pattern=r"^[^\x00]+$", description="The id of a worker, as host:slot.")]


@router.get("/users", summary="List users", responses=answers(Forbidden))
async def show_users(admin: Admin, context: Using) -> Users:
    """List all users with their roles. Only admins may."""
    return Users(items=[UserView.of(user) for user in await context.database.read(users.list_users)])


@router.get("/users/me", summary="Show your user", responses=answers())
async def show_me(user: User, context: Using) -> UserView:
    """Show the user whose token came with the request."""
    info = await context.database.read(users.find_user, user.name)
    assert info is not None, "users are never removed"
    return UserView.of(info)


@router.put("/users/{name}", summary="Create a user, or change a role", responses=answers(*_BODY, Conflict))
async def put_user(name: Annotated[UserName, Path()], body: UserRequest, admin: Admin, context: Using) -> UserView:
    """Give a user a role, which is in force at once: viewers look, users submit, admins do everything. Only admins
    may."""
    return UserView.of(await service.put_user(context, admin, name, body.role))


@router.get("/tokens", summary="List tokens", responses=answers(Forbidden))
async def show_tokens(admin: Admin, context: Using) -> Tokens:
    """List all tokens, the revoked among them, without their secrets. Only admins may."""
    return Tokens(items=[TokenView.of(token) for token in await context.database.read(access_tokens.list_tokens)])


@router.post("/tokens", status_code=201, summary="Make a token", responses=answers(*_BODY, Conflict))
async def make_token(body: TokenRequest, admin: Admin, context: Using, response: Response) -> NewToken:
    """Make a token for a user; a new name creates the user. Only this answer shows the secret. Only admins may."""
    made = await service.issue_token(context, body.user, body.role, body.label, body.expires_in_days)
    response.headers["Cache-Control"] = "no-store"
    return NewToken(**TokenView.of(made.info).model_dump(), token=made.token)


@router.delete(
    "/tokens/{token_id}", status_code=204, summary="Revoke a token", responses=answers(Forbidden, NotFound, Invalid)
)
async def revoke_token(token_id: Annotated[int, Path(ge=1, le=2**63 - 1)], admin: Admin, context: Using) -> None:
    """Revoke a token: from now on it is refused. Only admins may."""
    await service.revoke_token(context, token_id)


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
    return QuotaView.of(await service.put_limits(context, name, body.limits()))


@router.post(
    "/workers/{worker}/drain",
    status_code=204,
    summary="Drain a worker",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def drain_worker(worker: _Worker, admin: Admin, context: Using) -> None:
    """Let a worker finish the job that it runs and take no more, also after a restart, until it is resumed. Only admins
    may."""
    await service.drain(context, worker)


@router.post(
    "/workers/{worker}/resume",
    status_code=204,
    summary="Resume a worker",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def resume_worker(worker: _Worker, admin: Admin, context: Using) -> None:
    """Let a drained worker take jobs again. Only admins may."""
    await service.resume(context, worker)


@own_access.get("/tokens", summary="List your tokens", responses=answers())
async def show_own_tokens(user: User, context: Using) -> Tokens:
    """List your tokens, the revoked and expired among them, without their secrets."""
    tokens = await context.database.read(access_tokens.list_tokens, of_user=user.id)
    return Tokens(items=[TokenView.of(token) for token in tokens])


@own_access.post("/tokens/rotate", status_code=201, summary="Rotate your token", responses=answers())
async def rotate_own_token(user: Themselves, request: Request, context: Using, response: Response) -> NewToken:
    """Replace the token that came with the request by a new token with the same label and lifetime. The old token is
    useless at once, and the sessions that were opened with it end. Only this answer shows the secret."""
    issued = await context.database.run(access_tokens.rotate_token, access_tokens.hash_of(presented(request)))
    if issued is None:
        raise Unauthorized("The token expired or was revoked meanwhile.")
    context.access.forget()
    response.headers["Cache-Control"] = "no-store"
    return NewToken(**TokenView.of(issued.info).model_dump(), token=issued.token)


@own_access.delete(
    "/tokens/{token_id}", status_code=204, summary="Revoke a token of yours", responses=answers(NotFound, Invalid)
)
async def revoke_own_token(
    token_id: Annotated[int, Path(ge=1, le=2**63 - 1)], user: Themselves, context: Using
) -> None:
    """Revoke a token of yours: from now on it is refused."""
    if not await context.database.run(access_tokens.revoke_token, token_id, of_user=user.id):
        raise NotFound(f"There is no token {token_id} of yours in force.")


@own_access.delete("/sessions", status_code=204, summary="Sign out everywhere", responses=answers())
async def close_own_sessions(user: Themselves, context: Using) -> None:
    """End all your sessions of the dashboard, in every browser."""
    await context.database.run(sessions.close_sessions_of, user.id)
