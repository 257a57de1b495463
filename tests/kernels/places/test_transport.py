"""Connections go to addresses that were checked."""

import socket
from typing import Any

import pytest

from tests.support.places.web import WebServer
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.places import transport
from warpfold.kernels.places.place import Place
from warpfold.kernels.places.remote import RemoteObject, Session


def test_a_private_address_is_called_only_where_the_configuration_says_so(web: WebServer) -> None:
    web.files["x"] = b"content"
    session = web.session()
    assert RemoteObject(session, session.places.target(web.url("x"), "")).head == b"content"
    place = Place(f"http://localhost:{web.port}/")
    strict = web.session(place)
    with pytest.raises(InvalidInput, match="private address"):
        RemoteObject(strict, strict.places.target(f"http://localhost:{web.port}/x", ""))
    assert len(web.asked) == 1


def test_a_name_is_looked_up_once_so_that_the_checked_address_is_the_called_one(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [["93.184.216.34"], ["127.0.0.1"]]
    looked_up: list[str] = []
    called: list[tuple[Any, ...]] = []

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answers.pop(0)]

    class Refusing:
        def __init__(self, *_: Any) -> None:
            pass

        def settimeout(self, _: float) -> None:
            pass

        def connect(self, address: tuple[Any, ...]) -> None:
            called.append(address)
            raise ConnectionRefusedError("nobody is there")

        def close(self) -> None:
            pass

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(socket, "socket", Refusing)
    with pytest.raises(ConnectionRefusedError):
        transport.connected("rebinding.example.org", 443, 1.0, private=False)
    assert (looked_up, called) == (["rebinding.example.org"], [("93.184.216.34", 443)])
    with pytest.raises(InvalidInput, match="private address"):
        transport.connected("rebinding.example.org", 443, 1.0, private=False)
    assert len(called) == 1


def test_a_connection_serves_many_requests_and_a_closed_one_is_replaced(web: WebServer) -> None:
    web.files["x"] = b"0123456789"
    connections = transport.Connections()
    place = web.place()
    for _ in range(3):
        with connections.get(web.url("x"), {"Range": "bytes=0-3"}, place) as answer:
            out = bytearray(4)
            assert answer.read_into(memoryview(out)) == 4
            assert out == b"0123"
    (kept,) = (idle for idle in connections._idle.values() if idle)
    assert len(kept) == 1
    kept[0].sock.shutdown(socket.SHUT_RDWR)
    with connections.get(web.url("x"), {"Range": "bytes=0-3"}, place) as answer:
        assert answer.first(4) == b"0123"
    connections.close()


def test_a_session_that_is_closed_gives_up(web: WebServer) -> None:
    session: Session = web.session()
    session.close()
    with pytest.raises(Exception, match="was stopped"):
        session.pause(60.0)
