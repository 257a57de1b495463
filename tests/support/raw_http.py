"""Bare connections, for requests that no HTTP client would send."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

PATIENCE_S = 30


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes that came back until the server closed, or until the first answer was whole."""

    status: int
    headers: dict[str, str]
    body: bytes


@contextmanager
def connected(url: str, source: str = "127.0.0.1") -> Iterator[socket.socket]:
    """A connection to the server at `url` from the loopback address `source`."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), PATIENCE_S, (source, 0)) as link:
        yield link


def sent(link: socket.socket, data: bytes, most: int | None = None) -> int:
    """Send `data` again and again until `most` bytes are sent (None: once), or the server hangs up; how many went."""
    taken = 0
    try:
        while taken < (most or 1):
            link.sendall(data)
            taken += len(data)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return taken


def answer(link: socket.socket) -> Answer | None:
    """The next answer on `link`; None if the server closed without one."""
    came = b""
    while b"\r\n\r\n" not in came:
        piece = _more(link)
        if not piece:
            return None
        came += piece
    head, _, body = came.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += _more(link)
    return Answer(int(status.split()[1]), headers, body)


def hung_up(link: socket.socket) -> bool:
    """Whether the server closes, within our patience."""
    while piece := _more(link):
        assert piece
    return True


def exchange(url: str, request: bytes) -> Answer | None:
    """The answer to `request` on a connection of its own."""
    with connected(url) as link:
        sent(link, request)
        return answer(link)


def _more(link: socket.socket) -> bytes:
    try:
        return link.recv(65536)
    except ConnectionResetError:
        return b""
