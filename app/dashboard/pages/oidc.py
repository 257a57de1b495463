"""The way to a provider of OpenID Connect and back, for those who sign in there."""

from hmac import compare_digest
from typing import Annotated

import structlog
from fastapi import Query
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from structlog.typing import FilteringBoundLogger

from warpfold.app.auth.access import SESSION_COOKIE
from warpfold.app.auth.oidc import Flow, Provider, SignInFailed, sign_in
from warpfold.app.auth.users import UserName
from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.shared import Sharing
from warpfold.app.dashboard.visitors import remember, safe_path
from warpfold.app.http.context import Using
from warpfold.app.http.errors import NotFound

_COOKIE = "warpfold_flow"
_PATH = "/sign-in/oidc"
_LASTS_S = 600

log: FilteringBoundLogger = structlog.get_logger()

router = pages()


@router.get(_PATH)
async def begin(request: Request, shared: Sharing, next: Annotated[str, Query(max_length=2048)] = "/") -> Response:
    """Send the browser to the provider."""
    flow = Flow.begin(safe_path(next))
    try:
        address = await _provider(shared.provider).address(flow, _back(request))
    except SignInFailed as error:
        return _refused(request, error, flow.next)
    answer = RedirectResponse(address, 303, {"Cache-Control": "no-store"})
    # Lax: the browser comes back from another site, by a link.
    secure = request.url.scheme == "https"
    answer.set_cookie(_COOKIE, flow.cookie(), _LASTS_S, path=_PATH, httponly=True, samesite="lax", secure=secure)
    return answer


@router.get(f"{_PATH}/back")
async def finish(
    *,
    request: Request,
    shared: Sharing,
    context: Using,
    state: Annotated[str, Query(max_length=512)] = "",
    code: Annotated[str, Query(max_length=4096)] = "",
) -> Response:
    """Sign in whom the provider has signed in, and go where the visitor was going."""
    provider, settings = _provider(shared.provider), context.settings
    flow = Flow.of_cookie(request.cookies.get(_COOKIE, ""))
    if flow is None or not compare_digest(flow.state.encode(), state.encode()):
        await context.failures.note(request)
        return _refused(request, SignInFailed("This sign-in was not begun in this browser, or too long ago."), "/")
    try:
        if not code:
            raise SignInFailed("The sign-in provider let nobody in.")
        person = await provider.person(flow, code, _back(request))
        role = person.role(settings.oidc_roles)
        if role is None:
            raise SignInFailed("None of your groups may use this service; an administrator can change that.")
        TypeAdapter(UserName).validate_python(person.name)
        before = request.cookies.get(SESSION_COOKIE)
        secret = await context.database.run(
            sign_in,
            person,
            role,
            days=settings.session_days,
            takes_over=settings.oidc_takes_over,
            instead_of=before,
        )
    except ValidationError:
        return _refused(request, SignInFailed("The sign-in provider has a name for you that cannot stand here."), "/")
    except SignInFailed as error:
        log.info("sign-in failed", reason=str(error))
        await context.failures.note(request)
        return _refused(request, error, flow.next)
    # A page, not a redirect: a browser that comes from another site shows no strict cookie until it goes on from here.
    answer = page(request, "signed_in", next=safe_path(flow.next))
    answer.headers["Cache-Control"] = "no-store"
    remember(answer, request, secret, settings.session_days)
    answer.delete_cookie(_COOKIE, path=_PATH, httponly=True, samesite="lax")
    return answer


def _provider(provider: Provider | None) -> Provider:
    if provider is None:
        raise NotFound("There is no page here: no sign-in provider is set.")
    return provider


def _back(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers.get('host', '')}{_PATH}/back"


def _refused(request: Request, error: SignInFailed, next: str) -> Response:
    return page(request, "sign_in", 401, next=next, error=str(error), oidc=True)
