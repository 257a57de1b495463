"""Who asks: the bearer token of a request."""

from typing import Annotated

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase

from app.auth.repository import Principal
from app.context import context_of
from app.errors import Unauthorized


class BearerToken(SecurityBase):
    """Dependency that gives the request's user, or answers 401."""

    def __init__(self) -> None:
        self.model = HTTPBearer(
            bearerFormat="wf_…", description="`Authorization: Bearer wf_…`; made with `warpfold token create`"
        )
        self.scheme_name = "token"

    async def __call__(self, request: Request) -> Principal:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized("Send a token: `Authorization: Bearer wf_…`.")
        principal = await (await context_of(request)).access.principal(token.strip())
        if principal is None:
            raise Unauthorized("The token is unknown or was revoked.")
        return principal


authenticate = BearerToken()
User = Annotated[Principal, Depends(authenticate)]
