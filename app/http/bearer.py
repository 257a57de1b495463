"""The user of a request, by the request's bearer token or by the dashboard's session, and the check that the user and
the key may do what the route is for."""

from hmac import compare_digest
from typing import Annotated

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase

from warpfold.app.auth.access import SESSION_COOKIE, presented
from warpfold.app.auth.access_tokens import SCOPES, Principal
from warpfold.app.auth.scopes import Scope, needed
from warpfold.app.http.context import context_of
from warpfold.app.http.errors import Forbidden, Unauthorized


class BearerToken(SecurityBase):
    """Dependency that gives the request's user, or answers 401, or 403 where the user or the key may not do what the
    route is for."""

    def __init__(self) -> None:
        self.model = HTTPBearer(
            bearerFormat="wf_…", description="Send `Authorization: Bearer wf_…`; `warpfold token create` makes a token."
        )
        self.scheme_name = "token"

    async def __call__(self, request: Request) -> Principal:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        session = request.cookies.get(SESSION_COOKIE)
        if not scheme and session is not None and request.method in ("GET", "HEAD"):
            # A browser that is signed in may follow links into the api. A cookie never changes anything here.
            context = await context_of(request)
            principal = await context.access.of_session(session)
            if principal is None:
                await context.failures.note(request)
                raise Unauthorized("The session is over: sign in again, or send a token.")
            permit(principal, request)
            return principal
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized("Send a token: `Authorization: Bearer wf_…`.")
        context = await context_of(request)
        principal = await context.access.principal(token.strip())
        if principal is None:
            await context.failures.note(request)
            raise Unauthorized("The token is unknown or was revoked.")
        permit(principal, request)
        return principal


def permit(principal: Principal, request: Request) -> None:
    """Raise Forbidden where the user or the key may not do what the route is for. No route can forget to call this:
    `BearerToken` does, and so does the dashboard for whoever is signed in."""
    need = needed(request.method, request.scope["route"].path)
    if principal.may(need):
        return
    if need in SCOPES[principal.role] or need == "whole":
        has = ", ".join(sorted(principal.scopes)) or "nothing"
        wants = "all scopes of your role" if need == "whole" else f"the scope {need}"
        raise Forbidden(f"This key of {principal.name} has the scopes: {has}. Here it needs {wants}.")
    if need is Scope.ADMIN:
        raise Forbidden("Only admins may do this.")
    raise Forbidden(f"{principal.name} is a viewer, who may look at everything and change nothing.")


class WorkerOrUser(BearerToken):
    """Dependency that gives the request's user, None where it shows the token of the workers, or answers 401."""

    async def __call__(self, request: Request) -> Principal | None:  # type: ignore[override]
        expected = (await context_of(request)).settings.worker_token
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if expected and scheme.lower() == "bearer" and compare_digest(token.strip().encode(), expected.encode()):
            return None
        return await super().__call__(request)


authenticate = BearerToken()
User = Annotated[Principal, Depends(authenticate)]
MaybeWorker = Annotated[Principal | None, Depends(WorkerOrUser())]
"""The request's user, or None for a worker of the service."""


async def still_allowed(request: Request) -> bool:
    """Whether the token or session of a request is still valid; asked again while the request is held."""
    secret = presented(request)
    access = (await context_of(request)).access
    return await access.principal(secret) is not None or await access.of_session(secret) is not None


async def _administrator(user: User) -> Principal:
    if not user.is_admin:
        raise Forbidden("Only admins may do this.")
    return user


Admin = Annotated[Principal, Depends(_administrator)]
"""The request's user, who is an admin; anybody else gets a 403."""
