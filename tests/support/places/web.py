"""A web server of files, with ranges and ETags, that does what a test wants of it."""

import re
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from warpfold.contract.folders import Folders
from warpfold.kernels.places.place import Place, Places
from warpfold.kernels.places.remote import RetryPolicy, Session
from warpfold.kernels.places.transport import Timeouts

Behaviour = Callable[["Handler", bytes], None]
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_MODIFIED = "Sun, 22 Nov 2026 15:00:00 GMT"
HURRIED = RetryPolicy(retries=3, first_s=0.001, most_s=0.002, timeouts=Timeouts(connect_s=5.0, read_s=5.0))
"""Tries again at once, for tests."""


@dataclass
class WebServer:
    """Its files by path, what was asked, and how the next requests are answered: one after another, then as usual; or
    `always`, by path, however often a job asks again."""

    port: int
    files: dict[str, bytes] = field(default_factory=dict)
    behaviours: list[Behaviour] = field(default_factory=list)
    always: dict[str, Behaviour] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    etags: bool = True
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def url(self, name: str) -> str:
        return self.root + name

    def place(self, **facts: Any) -> Place:
        return Place(self.root, private=True, **facts)

    def session(self, *others: Place, retry_policy: RetryPolicy = HURRIED) -> Session:
        return Session(Places((self.place(), *others)), retry_policy)

    def ranges(self) -> list[str]:
        return [headers.get("range", "") for _, headers in self.asked]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server_: WebServer

    def do_GET(self) -> None:
        served = self.server_
        with served.lock:
            served.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            name = self.path.partition("?")[0].lstrip("/")
            behave = served.always.get(name) or (served.behaviours.pop(0) if served.behaviours else as_usual)
        content = served.files.get(name)
        with suppress(OSError):
            if content is None and behave is as_usual:
                status(404)(self, b"")
            else:
                behave(self, content or b"")

    def head(self, code: int, length: int, **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def asked_range(self, content: bytes) -> tuple[int, int]:
        match = _RANGE.fullmatch(self.headers.get("Range", ""))
        assert match is not None, "a reader asks for ranges"
        return int(match[1]), min(int(match[2]) + 1, len(content))

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@lru_cache(64)
def etag_of(content: bytes) -> str:
    return f'"{zlib.adler32(content):x}"'


def as_usual(handler: Handler, content: bytes) -> None:
    start, stop = handler.asked_range(content)
    etag = etag_of(content)
    if handler.headers.get("If-Match", etag) != etag:
        return status(412)(handler, content)
    if start >= len(content):
        return handler.head(416, 0, Content_Range=f"bytes */{len(content)}")
    handler.head(206, stop - start, **_facts(handler, content, start, stop))
    handler.wfile.write(content[start:stop])
    return None


def _facts(handler: Handler, content: bytes, start: int, stop: int) -> dict[str, str]:
    tagged = {"ETag": etag_of(content)} if handler.server_.etags else {}
    return {"Content_Range": f"bytes {start}-{stop - 1}/{len(content)}", "Last_Modified": _MODIFIED, **tagged}


def status(code: int, body: bytes = b"", **headers: str) -> Behaviour:
    def behave(handler: Handler, content: bytes) -> None:
        handler.head(code, len(body), **headers)
        handler.wfile.write(body)

    return behave


def cut(after: int) -> Behaviour:
    """Promise all of the range, and close the connection after so many bytes of it."""

    def behave(handler: Handler, content: bytes) -> None:
        start, stop = handler.asked_range(content)
        handler.head(206, stop - start, **_facts(handler, content, start, stop))
        handler.wfile.write(content[start : start + after])
        handler.wfile.flush()
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)

    return behave


def stall(after: int) -> Behaviour:
    """Promise all of the range, and send nothing after so many bytes of it."""

    def behave(handler: Handler, content: bytes) -> None:
        start, stop = handler.asked_range(content)
        handler.head(206, stop - start, **_facts(handler, content, start, stop))
        handler.wfile.write(content[start : start + after])
        handler.wfile.flush()
        hang(handler, content)

    return behave


def no_ranges(handler: Handler, content: bytes) -> None:
    handler.head(200, len(content), ETag=etag_of(content))
    handler.wfile.write(content)


def wrong_length(handler: Handler, content: bytes) -> None:
    """One byte less than was asked for, and said so."""
    start, stop = handler.asked_range(content)
    handler.head(206, stop - start - 1, **_facts(handler, content, start, stop - 1))
    handler.wfile.write(content[start : stop - 1])


def hang(handler: Handler, content: bytes) -> None:
    """Say nothing until the test is over."""
    handler.server_.over.wait()


def redirect(location: str, code: int = 302) -> Behaviour:
    return status(code, Location=location)


@contextmanager
def web_server() -> Iterator[WebServer]:
    handler = type("Bound", (Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    served = WebServer(server.server_address[1])
    handler.server_ = served  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield served
    finally:
        served.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def folders_of(*places: Place) -> Folders:
    """Folders of a server that reads from these places and no files."""
    from pathlib import Path

    return Folders((), Path("nowhere"), Places(places))
