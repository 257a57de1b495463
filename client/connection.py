"""The connection of a client to a service: conversations are held over it, and requests are repeated while the
service restarts, is busy, or says "too many". `AsyncConnection` of `async_connection.py` does the same for asyncio."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from warpfold.client.beside import send_both
from warpfold.client.errors import Refused, Unreachable
from warpfold.client.exchange import TIMEOUTS, Call, Interrupted, Receiver, Steps, certificates
from warpfold.client.http import httpx
from warpfold.client.later import tokens
from warpfold.client.settings import find_target
from warpfold.client.upload_transport import transports
from warpfold.contract.backoff import Backoff

if TYPE_CHECKING:
    from warpfold.client.tokens import Tokens

T = TypeVar("T")

_RETRY_STATUS = frozenset({429, 502, 503, 504})


class Connection:
    """A connection whose calls return when the answer has come. Threads may share one."""

    def __init__(self, url: str | None = None, token: str | None = None, *, patience_s: float = 30.0) -> None:
        target = find_target(url, token)
        headers, verify = {"Authorization": f"Bearer {target.token}"}, certificates(target.url)
        self._http = httpx.Client(
            base_url=target.url, headers=headers, timeout=TIMEOUTS, mounts=transports(target.url), verify=verify
        )
        self.url = target.url
        self._patience_s = patience_s

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def tokens(self) -> "Tokens":
        """Access tokens: one's own, and for an admin everybody's."""
        return tokens.Tokens(self._do)

    def _do(self, steps: Steps[T]) -> T:
        """Hold a conversation."""
        try:
            call = next(steps)
            while True:
                try:
                    answer: Any = self._send(call)
                except (Interrupted, Refused) as error:
                    call = steps.throw(error)
                except BaseException:
                    steps.close()  # what it holds, such as a bar or a file, goes now
                    raise
                else:
                    call = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def _send(self, call: Call[T]) -> T:
        if call.beside is not None:
            both: T = send_both(self._send, call, call.beside)
            return both
        time.sleep(call.after_s)
        retries = Retries(self._patience_s)
        while True:
            request = call.request(self._http)
            stood_at = 0 if call.receiver is None else call.receiver.position
            try:
                response = self._http.send(request, stream=call.receiver is not None)
                if call.receiver is not None:
                    self._receive(response, call.receiver)
            except httpx.TransportError as error:
                if call.receiver is not None and call.receiver.position > stood_at:
                    retries = Retries(self._patience_s)
                if call.once:
                    raise Interrupted(f"the connection to {self.url} broke: {error or type(error).__name__}") from error
                time.sleep(retries.after_error(error, self.url))
                continue
            pause = retries.after(response)
            if pause is None:
                return call.answer(response)
            time.sleep(pause)

    @staticmethod
    def _receive(response: httpx.Response, receiver: Receiver) -> None:
        try:
            if not response.is_success:
                response.read()
                return
            receiver.begin(response)
            for piece in response.iter_bytes():
                receiver.take(piece)
        finally:
            response.close()


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
