"""Signing in with a token, and out."""

from typing import Annotated

from fastapi import Form, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.auth import sessions
from warpfold.app.auth.presented import SESSION_COOKIE
from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import safe_path
from warpfold.app.http.context import Using

_LONGEST = 256

router = pages()


@router.get("/sign-in")
async def show(request: Request, next: Annotated[str, Query(max_length=2048)] = "/") -> Response:
    """The form."""
    return page(request, "sign_in", next=safe_path(next), error=None)


@router.post("/sign-in")
async def sign_in(
    request: Request,
    context: Using,
    token: Annotated[str, Form(max_length=_LONGEST)] = "",
    next: Annotated[str, Form(max_length=2048)] = "/",
) -> Response:
    """Exchange a token for a session, and go where the visitor was going."""
    given = token.strip()
    before = request.cookies.get(SESSION_COOKIE)
    days = context.settings.session_days
    secret = await context.database.run(sessions.open_session, given, days, before) if given else None
    if secret is None:
        await context.failures.note(request)
        error = "This token is unknown or was revoked." if given else "Enter a token."
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
