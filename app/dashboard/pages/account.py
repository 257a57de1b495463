"""The page Account: people sign in with a token, see their tokens, and sign out here or in every browser."""

from typing import Annotated

from fastapi import Form, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.auth import sessions
from warpfold.app.auth.access import SESSION_COOKIE
from warpfold.app.auth.access_tokens import list_tokens, revoke_token
from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import Visitor, safe_path
from warpfold.app.http.context import Using
from warpfold.app.http.errors import NotFound

_LONGEST_TOKEN = 256

router = pages()


@router.get("/sign-in")
async def ask_for_token(request: Request, next: Annotated[str, Query(max_length=2048)] = "/") -> Response:
    """Show the form that asks for a token."""
    return page(request, "sign_in", next=safe_path(next), error=None)


@router.post("/sign-in")
async def sign_in(
    request: Request,
    context: Using,
    token: Annotated[str, Form(max_length=_LONGEST_TOKEN)] = "",
    next: Annotated[str, Form(max_length=2048)] = "/",
) -> Response:
    """Exchange a token for a session, and go where the visitor was going."""
    stripped = token.strip()
    before = request.cookies.get(SESSION_COOKIE)
    days = context.settings.session_days
    secret = await context.database.run(sessions.open_session, stripped, days, before) if stripped else None
    if secret is None:
        await context.failures.note(request)
        error = "This token is unknown or was revoked." if stripped else "Enter a token."
        return page(request, "sign_in", 401, next=safe_path(next), error=error)
    answer = RedirectResponse(safe_path(next), 303, {"Cache-Control": "no-store"})
    answer.set_cookie(
        SESSION_COOKIE,
        secret,
        max_age=int(context.settings.session_days * 86400),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.post("/sign-out")
async def sign_out(request: Request, context: Using, everywhere: Annotated[bool, Form()] = False) -> Response:
    """End the session, here and in the database; or all sessions of the user, in whichever browser."""
    secret = request.cookies.get(SESSION_COOKIE)
    if secret is not None:
        visitor = await context.access.of_session(secret) if everywhere else None
        if visitor is not None:
            await context.database.run(sessions.close_sessions_of, visitor.id)
        await context.database.run(sessions.close_session, secret)
        context.access.forget()
    answer = RedirectResponse("/sign-in", 303, {"Cache-Control": "no-store", "Clear-Site-Data": '"cache"'})
    answer.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")
    return answer


@router.get("/account")
async def show(request: Request, visitor: Visitor, context: Using) -> Response:
    """Show the visitor's own tokens."""
    tokens = await context.database.read(list_tokens, of_user=visitor.id)
    return page(request, "account", user=visitor, tokens=tokens)


@router.post("/account/tokens/{token_id}/revoke")
async def revoke(token_id: int, visitor: Visitor, context: Using) -> Response:
    """Make a token of the visitor's useless, and with it the sessions that were opened with it."""
    if not await context.database.run(revoke_token, token_id, of_user=visitor.id):
        raise NotFound(f"There is no token {token_id} of yours in force.")
    return RedirectResponse("/account", 303)
