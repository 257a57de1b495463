"""The user of a request and the check of the user's role, by the request's bearer token or by the dashboard's
session."""

from hmac import compare_digest
from typing import Annotated

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase

from warpfold.app.auth.access import SESSION_COOKIE, presented
from warpfold.app.auth.access_tokens import Principal
from warpfold.app.http.context import context_of
from warpfold.app.http.errors import Forbidden, Unauthorized

_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class BearerToken(SecurityBase):
    """Dependency that gives the request's user, or answers 401. A viewer who does more than read gets a 403, unless
    the route changes the viewer's own access (`viewers`)."""

    def __init__(self, *, viewers: bool = False) -> None:
        self._viewers = viewers
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
            return principal
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized("Send a token: `Authorization: Bearer wf_…`.")
        context = await context_of(request)
        principal = await context.access.principal(token.strip())
        if principal is None:
            await context.failures.note(request)
            raise Unauthorized("The token is unknown or was revoked.")
        if not self._viewers:
            permit(principal, request.method)
        return principal


def permit(principal: Principal, method: str) -> None:
    """Raise Forbidden where a viewer would change something. No route can forget to call this, for `BearerToken`
    does."""
    if principal.only_reads and method not in _READING:
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
of_themselves = BearerToken(viewers=True)
Themselves = Annotated[Principal, Depends(of_themselves)]
"""The request's user, viewers included, about to change their own access."""

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
