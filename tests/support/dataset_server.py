"""A server of datasets with faults: it breaks off, sends wrong bytes, or stalls, and it counts requests."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class DatasetServer:
    """Its files by their ids; what it does wrong, an answer at a time; and what it was asked for."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    token: str = ""
    break_off_after: list[int] = field(default_factory=list)
    """The bodies of the next answers end after so many bytes."""
    flip: list[bool] = field(default_factory=list)
    """Whether the next answers have a wrong byte."""
    statuses: list[int] = field(default_factory=list)
    """The next answers are nothing but these."""
    go_on: threading.Event = field(default_factory=threading.Event)
    """While it is not set, an answer ends before its last byte, and the rest is yet to come."""
    ranges: list[str | None] = field(default_factory=list)
    """The `Range` of each request."""


@contextmanager
def dataset_server(**faults: Any) -> Iterator[DatasetServer]:
    """A server, until the end of the block."""
    state = DatasetServer(**faults)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            state.ranges.append(asked)
            dataset_id = self.path.split("/")[3]
            status = state.statuses.pop(0) if state.statuses else 200
            if dataset_id not in state.files:
                status = 404
            if state.token and self.headers.get("Authorization") != f"Bearer {state.token}":
                status = 401
            if status != 200:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            whole = state.files[dataset_id]
            start = int(re.sub(r"\D", "", asked)) if asked else 0
            body = whole[start:]
            if state.flip and state.flip.pop(0):
                body = body[:-1] + bytes([body[-1] ^ 1])
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if state.break_off_after:
                self.wfile.write(body[: state.break_off_after.pop(0)])
                self.close_connection = True
                return
            self.wfile.write(body[:-1])
            state.go_on.wait(60)
            self.wfile.write(body[-1:])

        def log_message(self, format: str, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]  # who asked has hung up
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        state.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()
