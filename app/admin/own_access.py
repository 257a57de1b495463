"""HTTP of one's own access: tokens and sessions of whoever asks."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from warpfold.app.admin.views import NewToken, Tokens, TokenView
from warpfold.app.auth import sessions
from warpfold.app.auth.access import presented
from warpfold.app.auth.access_tokens import hash_of, list_tokens, revoke_token, rotate_token
from warpfold.app.http.bearer import Themselves, User
from warpfold.app.http.context import Using
from warpfold.app.http.errors import Invalid, NotFound, Unauthorized
from warpfold.app.http.openapi import answers

router = APIRouter(prefix="/v1/users/me", tags=["administration"])


@router.get("/tokens", summary="List your tokens", responses=answers())
async def show_own_tokens(user: User, context: Using) -> Tokens:
    """List your tokens, the revoked and expired among them, without their secrets."""
    tokens = await context.database.read(list_tokens, of_user=user.id)
    return Tokens(items=[TokenView.of(token) for token in tokens])


@router.post("/tokens/rotate", status_code=201, summary="Rotate your token", responses=answers())
async def rotate_own_token(user: Themselves, request: Request, context: Using, response: Response) -> NewToken:
    """Replace the token that came with the request by a new one, with its label and lifetime. The old one is useless at
    once, and sessions that were opened with it end. The secret is in this answer and nowhere else."""
    issued = await context.database.run(rotate_token, hash_of(presented(request)))
    if issued is None:
        raise Unauthorized("The token expired or was revoked meanwhile.")
    context.access.forget()
    response.headers["Cache-Control"] = "no-store"
    return NewToken(**TokenView.of(issued.info).model_dump(), token=issued.token)


@router.delete(
    "/tokens/{token_id}", status_code=204, summary="Revoke a token of yours", responses=answers(NotFound, Invalid)
)
async def revoke_own_token(
    token_id: Annotated[int, Path(ge=1, le=2**63 - 1)], user: Themselves, context: Using
) -> None:
    """Make a token of yours useless, at once."""
    if not await context.database.run(revoke_token, token_id, of_user=user.id):
        raise NotFound(f"There is no token {token_id} of yours in force.")


@router.delete("/sessions", status_code=204, summary="Sign out everywhere", responses=answers())
async def close_own_sessions(user: Themselves, context: Using) -> None:
    """End all your sessions of the dashboard, in every browser."""
    await context.database.run(sessions.close_sessions_of, user.id)
