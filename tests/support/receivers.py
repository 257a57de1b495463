"""A receiver of webhooks that does what a test wants of it."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.waiting import until

Behaviour = Callable[["Handler"], None]


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """The messages that arrived, and the answers to the next ones, in their order. The last answer serves all later
    messages."""

    port: int
    behaviours: list[Behaviour]
    received: list[Received] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def url(self, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}/hook?of=me"

    def note(self, received: Received) -> Behaviour:
        with self._lock:
            self.received.append(received)
            return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]

    def wait(self, count: int, within_s: float = 60.0) -> list[Received]:
        until(
            lambda: len(self.received) >= count,
            within_s,
            describe=lambda: f"{len(self.received)} of {count} arrived",
        )
        return self.received


class Handler(BaseHTTPRequestHandler):
    receiver: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        behave = self.receiver.note(Received(self.path, headers, body))
        with suppress(OSError):
            behave(self)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def answer(status: int, **headers: str) -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return behave


def hang(handler: Handler) -> None:
    """Say nothing until the test is over."""
    handler.receiver.over.wait()


def drip(handler: Handler) -> None:
    """A header that never ends, a byte at a time."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while not handler.receiver.over.wait(0.02):
        handler.wfile.write(b"x")


@contextmanager
def receiver(*behaviours: Behaviour) -> Iterator[Receiver]:
    """A receiver on a free port, until the end of the block."""

    class Bound(Handler):
        pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Bound) as server:
        server.daemon_threads = True
        server.block_on_close = False
        Bound.receiver = Receiver(server.server_address[1], list(behaviours))
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield Bound.receiver
        finally:
            Bound.receiver.over.set()
            server.shutdown()
            thread.join()


def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])
