"""The connection for asyncio. It is a module of its own, so that the client that waits does not import asyncio."""

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from warpfold.client.beside import send_both_async
from warpfold.client.connection import Retries
from warpfold.client.errors import Refused
from warpfold.client.exchange import TIMEOUTS, Call, Interrupted, Receiver, Steps, certificates
from warpfold.client.http import httpx
from warpfold.client.later import tokens
from warpfold.client.settings import find_target
from warpfold.client.upload_transport import async_transports

if TYPE_CHECKING:
    from warpfold.client.tokens import Tokens

T = TypeVar("T")


class AsyncConnection:
    """A connection whose calls are awaited."""

    def __init__(self, url: str | None = None, token: str | None = None, *, patience_s: float = 30.0) -> None:
        target = find_target(url, token)
        headers, verify = {"Authorization": f"Bearer {target.token}"}, certificates(target.url)
        self._http = httpx.AsyncClient(
            base_url=target.url, headers=headers, timeout=TIMEOUTS, mounts=async_transports(target.url), verify=verify
        )
        self.url = target.url
        self._patience_s = patience_s

    async def close(self) -> None:
        """Hang up."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def tokens(self) -> "Tokens":
        """Access tokens: one's own, and for an admin everybody's; what its methods return is awaited."""
        return tokens.Tokens(self._do)

    async def _do(self, steps: Steps[T]) -> T:
        """Hold a conversation."""
        # In a thread, because a step may hash a large array.
        step = await asyncio.to_thread(_next, steps, None)
        while isinstance(step, Call):
            try:
                answer: Any = await self._send(step)
            except (Interrupted, Refused) as error:
                answer = error
            except BaseException:
                steps.close()
                raise
            step = await asyncio.to_thread(_next, steps, answer)
        return step.result

    async def _send(self, call: Call[T]) -> T:
        if call.beside is not None:
            both: T = await send_both_async(self._send, call, call.beside)
            return both
        await asyncio.sleep(call.after_s)
        retries = Retries(self._patience_s)
        while True:
            request = call.request(self._http)
            stood_at = 0 if call.receiver is None else call.receiver.position
            try:
                response = await self._http.send(request, stream=call.receiver is not None)
                if call.receiver is not None:
                    await self._receive(response, call.receiver)
            except httpx.TransportError as error:
                if call.receiver is not None and call.receiver.position > stood_at:
                    retries = Retries(self._patience_s)
                if call.once:
                    raise Interrupted(f"the connection to {self.url} broke: {error or type(error).__name__}") from error
                await asyncio.sleep(retries.after_error(error, self.url))
                continue
            pause = retries.after(response)
            if pause is None:
                return call.answer(response)
            await asyncio.sleep(pause)

    @staticmethod
    async def _receive(response: httpx.Response, receiver: Receiver) -> None:
        try:
            if not response.is_success:
                await response.aread()
                return
            receiver.begin(response)
            async for piece in response.aiter_bytes():
                receiver.take(piece)
        finally:
            await response.aclose()


@dataclass(frozen=True, slots=True)
class _End(Generic[T]):
    result: T


def _next(steps: Steps[T], answer: object) -> Call[Any] | _End[T]:
    # StopIteration may not leave a thread.
    try:
        return steps.throw(answer) if isinstance(answer, Interrupted | Refused) else steps.send(answer)
    except StopIteration as end:
        return _End(end.value)
