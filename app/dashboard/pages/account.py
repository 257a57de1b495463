"""The page Account: people sign in with a key, see, make, rotate and remove their keys, and sign out here or in every
browser."""

from typing import Annotated

from fastapi import Depends, Form, Query
from pydantic import ValidationError
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.admin import service
from warpfold.app.admin.views import OwnTokenRequest
from warpfold.app.auth import audit, sessions
from warpfold.app.auth.access import SESSION_COOKIE
from warpfold.app.auth.access_tokens import Issued, Principal, hash_of, list_tokens
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.dashboard.forms.keys import NOTHING_TYPED, BothHold, TypedKey, typed_key
from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.shared import Sharing
from warpfold.app.dashboard.visitors import Visitor, remember, safe_path
from warpfold.app.http.context import Context, Using
from warpfold.app.http.error_handlers import as_api_error
from warpfold.app.http.errors import ApiError, NotFound

_LONGEST_TOKEN = 256

router = pages()


@router.get("/sign-in")
async def ask_for_token(
    request: Request, shared: Sharing, next: Annotated[str, Query(max_length=2048)] = "/"
) -> Response:
    """Show the form that asks for a token, and the way to the provider where there is one."""
    return page(request, "sign_in", next=safe_path(next), error=None, oidc=shared.provider is not None)


@router.post("/sign-in")
async def sign_in(
    request: Request,
    context: Using,
    shared: Sharing,
    token: Annotated[str, Form(max_length=_LONGEST_TOKEN)] = "",
    next: Annotated[str, Form(max_length=2048)] = "/",
) -> Response:
    """Exchange a token for a session, and go where the visitor was going."""
    stripped = token.strip()
    before = request.cookies.get(SESSION_COOKIE)
    days = context.settings.session_days
    secret = await context.database.run(_sign_in, stripped, days, before) if stripped else None
    if secret is None:
        await context.failures.note(request)
        error = "This token is unknown or was revoked." if stripped else "Enter a token."
        return page(request, "sign_in", 401, next=safe_path(next), error=error, oidc=shared.provider is not None)
    answer = RedirectResponse(safe_path(next), 303, {"Cache-Control": "no-store"})
    remember(answer, request, secret, context.settings.session_days)
    return answer


def _sign_in(connection: Connection, token: str, days: float, before: str | None) -> str | None:
    secret = sessions.open_session(connection, token, days, before)
    seen = None if secret is None else sessions.principal_of_session(connection, hash_of(secret))
    if seen is not None:
        audit.record(connection, Deed(seen.principal, Action.SIGN_IN, owner=seen.principal.name))
    return secret


def _sign_out(connection: Connection, visitor: Principal, secret: str, *, everywhere: bool) -> bool:
    if everywhere:
        return sessions.close_sessions_of(connection, visitor.id) > 0
    return sessions.close_session(connection, secret)


@router.post("/sign-out")
async def sign_out(request: Request, context: Using, everywhere: Annotated[bool, Form()] = False) -> Response:
    """End the session, here and in the database; or all sessions of the user, in whichever browser."""
    secret = request.cookies.get(SESSION_COOKIE)
    if secret is not None:
        visitor = await context.access.of_session(secret)
        if visitor is not None:
            deed = Deed(visitor, Action.SIGN_OUT, owner=visitor.name, details={"everywhere": everywhere})
            await context.database.run(deed.done, _sign_out, visitor, secret, everywhere=everywhere)
        context.access.forget()
    answer = RedirectResponse("/sign-in", 303, {"Cache-Control": "no-store", "Clear-Site-Data": '"cache"'})
    answer.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")
    return answer


@router.get("/account")
async def show(request: Request, visitor: Visitor, context: Using) -> Response:
    """Show the visitor's own keys."""
    return await _page(request, visitor, context)


@router.post("/account/keys")
async def make_key(
    request: Request, visitor: Visitor, context: Using, typed: Annotated[TypedKey, Depends(typed_key)]
) -> Response:
    """Make a key, and show it this once. One with all scopes is one that follows the role."""
    typed = {**typed, "scopes": None if set(typed["scopes"]) == set(visitor.scopes) else typed["scopes"]}
    try:
        issued = await service.issue_own_token(context, visitor, OwnTokenRequest.model_validate(typed))
    except ValidationError as error:
        return await _page(request, visitor, context, error=as_api_error(error), typed=typed)
    except ApiError as error:
        return await _page(request, visitor, context, error=error, typed=typed)
    return await _page(request, visitor, context, issued=issued)


@router.post("/account/keys/{token_id}/rotate")
async def rotate_key(
    token_id: int, request: Request, visitor: Visitor, context: Using, both_hold_hours: BothHold = 0.0
) -> Response:
    """Give a key of the visitor's a new secret, and show it this once."""
    issued = await service.rotate_token(context, visitor, both_hold_hours, token_id=token_id, of_user=visitor.id)
    if issued is None:
        raise NotFound(f"There is no key {token_id} of yours in force.")
    return await _page(request, visitor, context, issued=issued)


@router.post("/account/keys/{token_id}/remove")
async def remove_key(token_id: int, visitor: Visitor, context: Using) -> Response:
    """Make a key of the visitor's useless, and with it the sessions that were opened with it."""
    await service.revoke_token(context, visitor, token_id, of_user=visitor.id)
    return RedirectResponse("/account", 303)


async def _page(
    request: Request,
    visitor: Principal,
    context: Context,
    *,
    error: ApiError | None = None,
    issued: Issued | None = None,
    typed: TypedKey = NOTHING_TYPED,
) -> Response:
    answer = page(
        request,
        "account",
        200 if error is None else error.status,
        user=visitor,
        keys=await context.database.read(list_tokens, of_user=visitor.id),
        scopes=sorted(visitor.scopes, key=lambda scope: scope.rank),
        error=error,
        issued=issued,
        typed=typed,
    )
    if issued is not None:
        answer.headers["Cache-Control"] = "no-store"
    return answer
