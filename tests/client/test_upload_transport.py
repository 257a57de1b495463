"""Large bodies go straight into a socket, and the client says the same of what goes wrong as httpx would."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import numpy as np
import pytest

from tests.support.service import Service
from warpfold.client import upload_transport
from warpfold.client.async_api import AsyncClient
from warpfold.client.contents import ArrayContent
from warpfold.client.exchange import CONTENT
from warpfold.client.upload_transport import AsyncUploadTransport, UploadTransport, transports

LARGE = ArrayContent(np.arange(2 << 20))


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """The address of a server that answers one connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            wire, _ = server.accept()
            with wire:
                answer(wire)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def request(url: str, **timeouts: float) -> httpx.Request:
    limits = {"connect": 10.0, "read": 10.0, "write": 10.0, **timeouts}
    headers = {"Content-Length": str(LARGE.length)}
    return httpx.Request("PATCH", f"{url}/a?b=c%20d", headers=headers, extensions={CONTENT: LARGE, "timeout": limits})


def received(wire: socket.socket, until: bytes = b"\r\n\r\n") -> bytes:
    came = b""
    while until not in came and (data := wire.recv(65536)):
        came += data
    return came


def test_the_request_and_the_answer_are_those_of_httpx() -> None:
    seen: list[bytes] = []

    def answer(wire: socket.socket) -> None:
        seen.append(received(wire))
        left = LARGE.length - len(seen[0].partition(b"\r\n\r\n")[2])
        while left:
            left -= len(wire.recv(min(left, 1 << 20)))
        wire.sendall(b"HTTP/1.1 201 Created\r\nLocation: /x\r\nContent-Length: 2\r\n\r\n{}")

    with serving(answer) as url, httpx.Client(mounts=transports(url)) as http:
        response = http.send(request(url))
        assert (response.status_code, response.headers["location"], response.json()) == (201, "/x", {})
        assert response.request.url == f"{url}/a?b=c%20d"
    head = seen[0].partition(b"\r\n\r\n")[0]
    assert head.startswith(b"PATCH /a?b=c%20d HTTP/1.1\r\n")
    assert head.lower().count(b"\r\nhost: ") == head.lower().count(b"\r\ncontent-length: ") == 1


def test_an_answer_that_comes_before_the_body_was_sent_is_read() -> None:
    def answer(wire: socket.socket) -> None:
        received(wire)
        wire.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        wire.shutdown(socket.SHUT_WR)
        while wire.recv(1 << 20):
            pass

    with serving(answer) as url:
        assert UploadTransport().handle_request(request(url)).status_code == 413


def hang_up(wire: socket.socket) -> None:
    received(wire)


def say_nothing(wire: socket.socket) -> None:
    while wire.recv(1 << 20):
        pass


def babble(wire: socket.socket) -> None:
    received(wire)
    wire.sendall(b"what?\r\n\r\n")
    while wire.recv(1 << 20):
        pass


@pytest.mark.parametrize(
    ("answer", "error"),
    [(hang_up, httpx.TransportError), (say_nothing, httpx.ReadTimeout), (babble, httpx.RemoteProtocolError)],
)
def test_what_breaks_off_is_an_error_of_the_transport(
    answer: Callable[[socket.socket], None], error: type[Exception]
) -> None:
    with serving(answer) as url, pytest.raises(error):
        UploadTransport().handle_request(request(url, read=0.2))


def test_a_server_that_takes_nothing_is_a_time_limit_of_writing() -> None:
    ended = threading.Event()
    with serving(lambda _: (ended.wait(), None)[1]) as url:
        with pytest.raises(httpx.WriteTimeout):
            UploadTransport().handle_request(request(url, write=0.2))
        ended.set()


def test_nobody_there_is_an_error_of_connecting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(httpx.ConnectError):
        UploadTransport().handle_request(request(f"http://127.0.0.1:{port}"))


def test_an_upload_that_is_cancelled_hangs_up() -> None:
    begun, ended = threading.Event(), threading.Event()

    def answer(wire: socket.socket) -> None:
        received(wire)
        begun.set()
        say_nothing(wire)
        ended.set()

    async def cancel(url: str) -> None:
        upload = asyncio.create_task(AsyncUploadTransport().handle_async_request(request(url, read=600.0)))
        await asyncio.to_thread(begun.wait)
        upload.cancel()
        with pytest.raises(asyncio.CancelledError):
            await upload

    with serving(answer) as url:
        asyncio.run(cancel(url))
        ended.wait()


@pytest.mark.parametrize(
    ("url", "proxies", "mounted"),
    [
        ("http://127.0.0.1:8080", {"http": "http://proxy"}, True),
        ("http://[::1]:8080/prefix", {"http": "http://proxy"}, True),
        ("http://gpu.example", {"http": "http://proxy"}, False),
        ("http://gpu.example", {}, True),
        ("https://127.0.0.1:8080", {}, False),
    ],
)
def test_tls_and_proxies_stay_with_httpx(
    monkeypatch: pytest.MonkeyPatch, url: str, proxies: dict[str, str], mounted: bool
) -> None:
    monkeypatch.setattr(upload_transport, "getproxies", lambda: proxies)
    assert any(isinstance(transport, UploadTransport) for transport in transports(url).values()) is mounted


def test_the_asynchronous_client_sends_large_arrays_too(service: Service) -> None:
    array = np.arange(2 << 20) + 7

    async def upload() -> tuple[int, ...]:
        async with AsyncClient(service.url, service.token) as client:
            kept = await client.upload(array)
            await client.delete_dataset(kept.id)
            return kept.shape

    assert asyncio.run(upload()) == (2 << 20,)
