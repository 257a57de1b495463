"""How long and how often a request is repeated: while the service restarts, is busy, or says "too many"."""

import time

import httpx

from warpfold.client.errors import Unreachable
from warpfold.contract.backoff import Backoff

_RETRY_STATUS = frozenset({429, 502, 503, 504})


class Retries:
    """The repetitions of one request: each pause is twice as long as the one before, and at least what the service
    asked for; none goes beyond `seconds` from the start."""

    def __init__(self, seconds: float) -> None:
        self._give_up = time.monotonic() + seconds
        # Pauses vary, so that the clients that one restart interrupted do not all come back at once.
        self._backoff = Backoff(first=0.1, longest=2.0, least=0.5)

    def after_error(self, error: httpx.TransportError, url: str) -> float:
        """How long to wait after no answer came. Raises Unreachable when the time for repetitions is over."""
        pause = self._next(0.0)
        if pause is None:
            raise Unreachable(f"no answer from {url}: {error or type(error).__name__}") from error
        return pause

    def after(self, response: httpx.Response) -> float | None:
        """How long to wait before asking again; None if the answer stands."""
        if response.status_code not in _RETRY_STATUS:
            return None
        return self._next(_asked_for_s(response))

    def _next(self, asked_s: float) -> float | None:
        pause = max(asked_s, self._backoff.next())
        return None if time.monotonic() + pause > self._give_up else pause


def _asked_for_s(response: httpx.Response) -> float:
    try:
        return max(0.0, float(response.headers.get("Retry-After", 0)))
    except ValueError:  # an HTTP date, in place of which the client's own back-off serves
        return 0.0
