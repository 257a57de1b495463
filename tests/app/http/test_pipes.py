"""Bodies by a pipe: all bytes reach the file, whatever the system can splice."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warpfold.app.http.bodies import SocketBody
from warpfold.app.http.pipes import Piped, PipeFull, opened_pipe

BODY = os.urandom(3 << 20)


@pytest.fixture
def wires() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A sender, and a receiver that does not block."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()
        receiver.setblocking(False)
        with receiver:
            yield sender, receiver


def test_a_pipe_that_is_full_is_not_a_socket_without_bytes(wires: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = wires
    with opened_pipe(4096) as pipe:
        with pytest.raises(BlockingIOError):
            pipe.fill(receiver.fileno(), 1 << 20)
        sender.setblocking(False)
        sender.send(BODY)
        assert pipe.fill(receiver.fileno(), 1 << 20) > 0
        with pytest.raises(PipeFull):
            pipe.fill(receiver.fileno(), 1 << 20)


def refuse(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Let the system refuse to splice out of sockets, or into files."""
    splice: Callable[..., int] = os.splice

    def some(source: int, target: int, size: int, **options: int) -> int:
        if what == ("files" if "offset_dst" in options else "sockets"):
            raise OSError(errno.EINVAL, "no")
        return splice(source, target, size, **options)

    monkeypatch.setattr("os.splice", some)


@pytest.mark.parametrize("refused", ["nothing", "sockets", "files"])
def test_a_body_comes_whole_whatever_can_be_spliced(
    wires: tuple[socket.socket, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    sender, receiver = wires
    sender.setblocking(False)
    sent = sender.send(BODY)
    refuse(monkeypatch, refused)
    released: list[SocketBody] = []
    body = SocketBody(os.dup(receiver.fileno()), b"early", sent + 5, released.append)
    with (tmp_path / "a").open("w+b") as file:

        def take(piece: bytes | bytearray | memoryview | Piped) -> None:
            if not isinstance(piece, Piped):
                file.write(piece)
                file.flush()
                return
            at = file.seek(0, os.SEEK_END)
            while piece:
                at += piece.write_to(file.fileno(), at)

        asyncio.run(body.rest(take))
    body.release()
    assert (tmp_path / "a").read_bytes() == b"early" + BODY[:sent]
    assert released == [body]
