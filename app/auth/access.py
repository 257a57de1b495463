"""The user whom a request comes from, by the token or session that it shows; the answer is remembered for a moment."""

import time
from collections.abc import Callable

from sqlalchemy import Connection
from starlette.requests import HTTPConnection

from warpfold.app.auth import sessions
from warpfold.app.auth.access_tokens import PREFIX, Principal, Seen, hash_of, note_use, principal_of
from warpfold.app.db import Database

SESSION_COOKIE = "warpfold_session"

_KEPT_S = 5.0
_SEEN_S = 600.0
_MOST_KEPT = 10_000


def presented(request: HTTPConnection) -> str:
    """The bearer token, or the session's secret of a request without `Authorization`; empty where there is neither."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme:
        return token.strip() if scheme.lower() == "bearer" else ""
    return request.cookies.get(SESSION_COOKIE, "") if "cookie" in request.headers else ""


class Access:
    """Looks up the user of a secret and remembers it for five seconds, or until `forget` is called after a
    revocation. Unknown secrets are not remembered: guessing must not fill the memory. A look-up notes that the key is
    used, at most once a minute.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: dict[str, tuple[Principal, float]] = {}
        self._generation = 0

    async def principal(self, token: str) -> Principal | None:
        """The user of `token`, None if it is unknown or revoked."""
        return await self._find(token, PREFIX, principal_of)

    async def of_session(self, secret: str) -> Principal | None:
        """The user of a session of the dashboard, None if it is unknown, over or expired."""
        return await self._find(secret, sessions.PREFIX, sessions.principal_of_session)

    def seen(self, secret: str) -> Principal | None:
        """The user whom `secret` belonged to when it was last looked up, some minutes ago at most. This serves to count
        requests, not to grant access."""
        known = self._kept.get(secret)
        return known[0] if known is not None and known[1] + _SEEN_S > time.monotonic() else None

    def forget(self) -> None:
        """Forget all users, so that each secret is looked up again."""
        self._generation += 1
        self._kept.clear()

    async def _find(
        self, secret: str, prefix: str, look_up: Callable[[Connection, bytes], Seen | None]
    ) -> Principal | None:
        # A token must not pass as a session, nor a session as a token: each has its prefix, which is checked before the
        # cache is asked.
        if not secret.startswith(prefix):
            return None
        known = self._kept.get(secret)
        now = time.monotonic()
        if known is not None and known[1] > now:
            return known[0]
        generation = self._generation
        seen = await self._database.read(look_up, hash_of(secret))
        if seen is None:
            self._kept.pop(secret, None)
            return None
        principal = seen.principal
        if seen.due and principal.key_id is not None:
            await self._database.step(note_use, principal.key_id)
        # If a revocation was announced meanwhile, the row may have been read before it.
        if generation == self._generation:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[secret] = (principal, now + _KEPT_S)
        return principal
