"""HTTP/1.1 as uvicorn speaks it by httptools, with limits: of a head before it is kept, of time, of connections."""

import asyncio
import os
import re
from functools import partial
from typing import Any, Protocol

import httptools
from starlette.responses import Response
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from warpfold.app.fairness.rates import HEALTH_PATHS, address_of
from warpfold.app.http.bodies import EXTENSION, SocketBody
from warpfold.app.http.errors import (
    ApiError,
    BadRequest,
    HeadTooLarge,
    TimedOut,
    TooMany,
    Unavailable,
    UriTooLong,
    VersionNotSupported,
    problem_response,
)
from warpfold.app.metrics.metrics import Ending
from warpfold.app.server.connections import Admission, Connections, Deadlines, Phase

MOST_LINES = 100
MOST_BYTES_OF_A_LINE = 8 << 10
MOST_BYTES_OF_A_HEAD = 32 << 10
MOST_BYTES_OF_A_TARGET = 8 << 10
_MOST_WAITING = 64
"""How many requests may be sent ahead on one connection, before the first of them is answered."""

_PIECE = 16 << 10
"""The parser keeps a line until its end and says nothing before: it is fed so much at a time, and asked."""

_LEAST_RATE = 1 << 10
"""The fewest bytes a second at which a body may come in, in the long run."""

_LINGER_S = 2.0
_HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=%:\[\]-]*")
_VERSIONS = ("1.0", "1.1")
_METHODS = b"DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"
_LEAST_HANDED_OVER = 1 << 20
"""Shorter bodies are here before a thread could be."""


class Proxies(Protocol):
    """The addresses of proxies, through which others come."""

    def __contains__(self, host: str | None, /) -> bool: ...


class Guarded(HttpToolsProtocol):
    """One connection. A request that is refused here gets a problem document, and the connection ends."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: Connections,
        proxies: "Proxies",
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.address = ""
        self.phase = Phase.HEAD
        self._connections = connections
        self._proxies = proxies
        self._may = Admission.ALL
        self._deaf = False  # bytes that arrive are no longer read
        self._since = 0.0
        self._begun = 0.0  # the body
        self._lines = self._hosts = self._head = self._unframed = self._body = 0
        self._unread = 0
        self._unread_since = 0.0
        self._handed: SocketBody | None = None  # reads the socket instead of us
        self._to_drop = 0  # the rest of the body, which the parser does not know of

    # What the transport says.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        self.address = address_of(host)
        self._since = self._unread_since = self.loop.time()
        self._may = self._connections.admit(self, is_proxy=host in self._proxies)
        if self._may is Admission.NOTHING:
            self._refuse(TooMany("There are too many connections from this address already.", 1))
        else:
            self._connections.turned(self, Phase.HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.forget(self)
        if self._handed is not None:
            self._handed.stop()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return  # dropped: unread bytes would make the kernel reset the connection, and so lose the answer
        self._unset_keepalive_if_required()
        if self._to_drop:
            data = self._drop(data)
            if not data:
                return
        self._since_if_idle()
        for start in range(0, len(data), _PIECE):
            piece = data if len(data) <= _PIECE else data[start : start + _PIECE]
            framed = self._body
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade:
                self._last_cycle_closes()  # the request is answered in HTTP/1.1, and bytes behind it are ignored
            except httptools.HttpParserError as error:
                self._refuse(BadRequest(f"The request is not valid HTTP/1.1: {_reason(error)}."), Ending.BAD_REQUEST)
            if self._deaf or self.transport.is_closing():
                return
            self._unframed = 0 if self._body > framed else self._unframed + len(piece)
            if self.phase in (Phase.HEAD, Phase.BODY) and self._unframed > MOST_BYTES_OF_A_HEAD:
                # A line without end, or bytes between two pieces of a body that belong to neither.
                self._refuse(_HEAD_TOO_LARGE, Ending.HEAD_TOO_LARGE)
                return

    # What the parser says.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._lines = self._hosts = self._head = self._unframed = 0
        self._turn(Phase.HEAD)

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MOST_BYTES_OF_A_TARGET:
            detail = f"The target of a request may have at most {MOST_BYTES_OF_A_TARGET} bytes."
            self._refuse_and_stop(UriTooLong(detail), Ending.HEAD_TOO_LARGE)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += 1
        size = len(name) + len(value)
        self._head += size
        if self._lines > MOST_LINES or size > MOST_BYTES_OF_A_LINE or self._head > MOST_BYTES_OF_A_HEAD:
            self._refuse_and_stop(_HEAD_TOO_LARGE, Ending.HEAD_TOO_LARGE)
        if self.phase is not Phase.HEAD:
            return  # a trailer, which nobody reads
        if name.lower() == b"host":
            self._hosts += 1
            if _HOST.fullmatch(value) is None:
                self._refuse_and_stop(BadRequest("The header Host names no host."), Ending.BAD_REQUEST)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        version = self.parser.get_http_version()
        if version not in _VERSIONS:
            self._refuse_and_stop(VersionNotSupported.of(version), Ending.BAD_REQUEST)
        if self._hosts != 1 and (self._hosts or version == "1.1"):
            detail = f"A request has one header Host; this one has {self._hosts or 'none'}."
            self._refuse_and_stop(BadRequest(detail), Ending.BAD_REQUEST)
        if len(self.pipeline) >= _MOST_WAITING:
            detail = f"At most {_MOST_WAITING} requests may be sent ahead of their answers."
            self._refuse_and_stop(TooMany(detail, 1), Ending.BAD_REQUEST)
        if self._may is Admission.HEALTH and self.url.partition(b"?")[0] not in HEALTH_PATHS:
            detail = "The service has as many connections as it may; try again."
            self._refuse_and_stop(Unavailable(detail), None)
        if self.url == b"*" and self.parser.get_method() == b"OPTIONS":
            self._answer(Response(status_code=204, headers={"Allow": _METHODS.decode()}))
            raise _Stopped
        super().on_headers_complete()
        self._begun = self.loop.time()
        self._body = self._unframed = 0
        self._turn(Phase.BODY)
        declared = next((value for name, value in self.headers if name == b"content-length"), b"")
        length = int(declared) if declared.isdigit() else 0
        if length >= _LEAST_HANDED_OVER and self.scheme == "http" and not self.parser.should_upgrade():
            self.scope["extensions"] = {EXTENSION: partial(self._hand_over, self.cycle, length)}  # type: ignore[dict-item]

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        self._since = self.loop.time()
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._turn(Phase.IDLE if self.cycle.response_complete else Phase.ANSWER)

    # Bodies that a thread reads.

    def _hand_over(self, cycle: RequestResponseCycle, length: int) -> SocketBody | None:
        """Let a thread read the body of the request that is being answered. None if some of it was read already, or if
        other threads read as many bodies as they may."""
        early = bytes(cycle.body)
        if cycle is not self.cycle or not cycle.more_body or len(early) != self._body or self.transport.is_closing():
            return None
        if not self._connections.hand_over():
            return None
        self.flow.pause_reading()
        if cycle.waiting_for_100_continue:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            cycle.waiting_for_100_continue = False
        cycle.body = bytearray()
        descriptor = os.dup(self.transport.get_extra_info("socket").fileno())
        self._handed = SocketBody(descriptor, early, length, self._take_back)
        return self._handed

    def _take_back(self, body: SocketBody) -> None:
        """Read the socket again: the thread that did has ended."""
        self._connections.take_back()
        self._handed = None
        self._body = body.received
        if self.transport.is_closing() or self._deaf:
            return
        if body.ended:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self.transport.abort()
            return
        self._to_drop = body.unread
        if not self._to_drop:
            self._end_body()
        self.flow.resume_reading()

    def _drop(self, data: bytes) -> bytes:
        """The part of `data` after the body of a request that nobody reads to its end."""
        dropped = min(self._to_drop, len(data))
        self._to_drop -= dropped
        self._body += dropped
        self._since = self.loop.time()
        if not self._to_drop:
            self._end_body()
        return data[dropped:]

    def _end_body(self) -> None:
        """Begin anew behind a body that the parser did not see."""
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.phase is Phase.ANSWER and not self.pipeline and self.cycle.response_complete:
            self._turn(Phase.IDLE)

    # What the clock says.

    def look(self, now: float, deadlines: Deadlines) -> None:
        """End the connection if its client took too long."""
        self._look_at_unread(now, deadlines.read_s)
        waited = now - self._since
        if self.phase is Phase.HEAD and waited > deadlines.head_s:
            detail = f"The head of a request must be here within {deadlines.head_s:g} s."
            self._refuse(TimedOut(detail) if self._unframed else None, Ending.HEAD_TOO_SLOW)
        elif self._handed is not None and self.phase is Phase.BODY and not self._is_awaited(self._handed):
            self._begun += now - max(self._since, self._begun)
            self._since = now
        elif self._handed is None and self.phase is Phase.BODY and self.flow.read_paused:
            self._begun += now - max(self._since, self._begun)  # this server does not read at the moment
            self._since = now
        elif self.phase is Phase.BODY:
            lasted = now - self._begun
            if waited > deadlines.body_s or (lasted > deadlines.body_s and self._body < _LEAST_RATE * lasted):
                detail = f"A body may pause for {deadlines.body_s:g} s and must bring {_LEAST_RATE} bytes a second."
                self._refuse(TimedOut(detail), Ending.BODY_TOO_SLOW)
        elif self.phase is Phase.IDLE and waited > deadlines.idle_s:
            self.transport.close()
        elif self.phase is Phase.LEAVING and waited > _LINGER_S:
            self.transport.abort()

    def end(self, why: Ending) -> None:
        """Close the connection, which has no request under way."""
        self._deaf = True
        self.phase = Phase.LEAVING
        self.transport.abort()

    def _is_awaited(self, body: SocketBody) -> bool:
        """Whether the thread that reads `body` waits for the client, which sent nothing since the last look."""
        came = body.received - self._body
        self._body = body.received
        return body.waiting and not came

    def _look_at_unread(self, now: float, read_s: float) -> None:
        unread = self.transport.get_write_buffer_size()
        if not unread or unread < self._unread:
            self._unread_since = now
        elif now - self._unread_since > read_s:
            self._connections.note(Ending.NOT_READ, self.address)
            self.transport.abort()
        self._unread = unread

    def _since_if_idle(self) -> None:
        if self.phase is Phase.IDLE:
            self._unframed = 0
            self._turn(Phase.HEAD)

    def _turn(self, phase: Phase) -> None:
        self.phase = phase
        self._since = self.loop.time()
        self._connections.turned(self, phase)

    # Refusals.

    def _refuse_and_stop(self, error: ApiError, why: Ending | None) -> None:
        self._refuse(error, why)
        raise _Stopped

    def _refuse(self, error: ApiError | None, why: Ending | None = None) -> None:
        """Send `error` (nothing if it is None) after the answer in progress, and end the connection."""
        if self._deaf or self.transport.is_closing():
            return
        self._deaf = True
        if self._handed is not None:
            self._handed.stop()
        if why is not None:
            self._connections.note(why, self.address)
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if self.phase is Phase.HEAD:  # bytes of a later request
                self._last_cycle_closes()
                self._turn(Phase.ANSWER)
                return
            if cycle.response_started:
                self.transport.abort()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        if error is None:
            self.transport.close()
        else:
            self._answer(problem_response(error))

    def _last_cycle_closes(self) -> None:
        cycle = self.pipeline[0][0] if self.pipeline else self.cycle
        if cycle is not None:
            cycle.keep_alive = False

    def _answer(self, response: Response) -> None:
        self._deaf = True
        lines = [STATUS_LINE[response.status_code]]
        headers = [*self.server_state.default_headers, *response.raw_headers, (b"connection", b"close")]
        lines += [b"%b: %b\r\n" % header for header in headers]
        self.transport.write(b"".join((*lines, b"\r\n", bytes(response.body))))
        self._turn(Phase.LEAVING)
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()


class _Stopped(Exception):
    """Makes the parser stop: the connection was answered already."""


_HEAD_TOO_LARGE = HeadTooLarge(
    f"A head may have at most {MOST_LINES} lines of at most {MOST_BYTES_OF_A_LINE} bytes, "
    f"{MOST_BYTES_OF_A_HEAD} bytes in all."
)


def _reason(error: httptools.HttpParserError) -> str:
    if isinstance(error, httptools.HttpParserCallbackError):
        return "the target or a header holds a character that is not allowed"
    return (str(error.args[0]) if error.args else "").rstrip(".") or "it is malformed"
