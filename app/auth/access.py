"""Who a token belongs to, remembered for a moment."""

import time

from app.auth.repository import Principal, principal_of
from app.auth.tokens import PREFIX, hash_of
from app.db import Database

_KEPT_S = 5.0
_MOST_KEPT = 10_000


class Access:
    """Looks tokens up and keeps what it found for five seconds, or until `forget` is called (a token was revoked).

    Unknown tokens are not kept: guessing must not fill the memory.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: dict[str, tuple[Principal, float]] = {}
        self._generation = 0

    async def principal(self, token: str) -> Principal | None:
        """The user of `token`, None if it is unknown or revoked."""
        known = self._kept.get(token)
        now = time.monotonic()
        if known is not None and known[1] > now:
            return known[0]
        if not token.startswith(PREFIX):
            return None
        generation = self._generation
        found = await self._database.read(principal_of, hash_of(token))
        # If a revocation was announced meanwhile, what was read may be older than it.
        if found is not None and generation == self._generation:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[token] = (found, now + _KEPT_S)
        elif found is None:
            self._kept.pop(token, None)
        return found

    def forget(self) -> None:
        """Look everything up again."""
        self._generation += 1
        self._kept.clear()
