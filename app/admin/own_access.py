"""HTTP of one's own access: the user of the request, their keys, and their sessions."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from warpfold.app.admin import service
from warpfold.app.admin.views import NewToken, OwnTokenRequest, Tokens, TokenView, UserView
from warpfold.app.auth import access_tokens, sessions, users
from warpfold.app.auth.access import presented
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.http.bearer import User
from warpfold.app.http.context import Using
from warpfold.app.http.errors import (
    BadRequest,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    Unauthorized,
    UnsupportedMedia,
)
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRoute

MOST_HOURS = 24 * 30

router = APIRouter(prefix="/v1/users/me", tags=["administration"], route_class=JsonRoute)

TokenId = Annotated[int, Path(ge=1, le=2**63 - 1)]
BothHold = Annotated[
    float,
    Query(
        ge=0,
        le=MOST_HOURS,
        allow_inf_nan=False,
        description="For how many hours the old secret holds beside the new one. With 0 it is useless at once.",
    ),
]


@router.get("", summary="Show your user", responses=answers())
async def show_me(user: User, context: Using) -> UserView:
    """Show the user whose token came with the request."""
    info = await context.database.read(users.find_user, user.name)
    if info is None:
        raise Unauthorized("The user was removed meanwhile.")
    return UserView.of(info)


@router.get("/tokens", summary="List your tokens", responses=answers(Forbidden))
async def show_own_tokens(user: User, context: Using) -> Tokens:
    """List your tokens, the revoked and expired among them, without their secrets."""
    tokens = await context.database.read(access_tokens.list_tokens, of_user=user.id)
    return Tokens(items=[TokenView.of(token) for token in tokens])


@router.post(
    "/tokens",
    status_code=201,
    summary="Make a token of yours",
    responses=answers(BadRequest, Forbidden, TooLarge, UnsupportedMedia, Invalid),
)
async def make_own_token(body: OwnTokenRequest, user: User, context: Using, response: Response) -> NewToken:
    """Make a further token for yourself. It lasts no longer than the token that makes it, and only a token with all
    scopes of your role makes one. Only this answer shows the secret."""
    return _shown(response, await service.issue_own_token(context, user, body))


@router.post("/tokens/rotate", status_code=201, summary="Rotate the token in use", responses=answers(Invalid))
async def rotate_own_token(
    user: User, request: Request, context: Using, response: Response, both_hold_hours: BothHold = 0.0
) -> NewToken:
    """Give the token that came with the request a new secret; its lifetime begins anew. Unless `both_hold_hours` says
    otherwise, the old secret is useless at once, and the sessions that were opened with the token end. Only this answer
    shows the secret."""
    shown = access_tokens.hash_of(presented(request))
    issued = await service.rotate_token(context, user, both_hold_hours, shown=shown)
    if issued is None:
        raise Unauthorized("The token expired, was revoked, or was rotated before.")
    return _shown(response, issued)


@router.post(
    "/tokens/{token_id}/rotate",
    status_code=201,
    summary="Rotate a token of yours",
    responses=answers(Forbidden, NotFound, Invalid),
)
async def rotate_token_of_mine(
    token_id: TokenId, user: User, context: Using, response: Response, both_hold_hours: BothHold = 0.0
) -> NewToken:
    """Give a token of yours a new secret; its lifetime begins anew. Unless `both_hold_hours` says otherwise, the old
    secret is useless at once. Only this answer shows the secret."""
    issued = await service.rotate_token(context, user, both_hold_hours, token_id=token_id, of_user=user.id)
    if issued is None:
        raise NotFound(f"There is no token {token_id} of yours in force.")
    return _shown(response, issued)


@router.delete(
    "/tokens/{token_id}", status_code=204, summary="Remove a token of yours", responses=answers(NotFound, Invalid)
)
async def revoke_own_token(token_id: TokenId, user: User, context: Using) -> None:
    """Remove a token of yours: from now on it is refused. Lists go on to show when it was removed."""
    await service.revoke_token(context, user, token_id, of_user=user.id)


@router.delete("/sessions", status_code=204, summary="Sign out everywhere", responses=answers(Forbidden))
async def close_own_sessions(user: User, context: Using) -> None:
    """End all your sessions of the dashboard, in every browser."""
    deed = Deed(user, Action.SIGN_OUT, owner=user.name, details={"everywhere": True})
    await context.database.run(deed.done, sessions.close_sessions_of, user.id)


def _shown(response: Response, issued: access_tokens.Issued) -> NewToken:
    response.headers["Cache-Control"] = "no-store"
    return NewToken.of_issued(issued)
