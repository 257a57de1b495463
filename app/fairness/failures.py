"""Failed sign-ins: slowed, so that guessing and looking up what is unknown costs little."""

import asyncio
import random

from starlette.requests import HTTPConnection

from warpfold.app.fairness.rates import Buckets
from warpfold.app.fairness.turns import give_up_turn
from warpfold.app.server.connections import address_of

_A_SECOND = 5.0
_BURST = 50.0
_SLOWED_BY_S = 1.0


class Failures:
    """Failed sign-ins by address: each beyond a few a second is answered one to two seconds later. Right ones are not
    touched, for many share an address."""

    def __init__(self) -> None:
        self._buckets = Buckets(_A_SECOND, _BURST)

    async def note(self, request: HTTPConnection) -> None:
        """Count one, and wait where there were too many."""
        host = request.client.host if request.client is not None else ""
        if self._buckets.take(address_of(host)):
            give_up_turn()
            # Not all at the same moment: those who guess over many connections would come back as one.
            await asyncio.sleep(_SLOWED_BY_S * (1 + random.random()))  # noqa: S311 (not a secret)
