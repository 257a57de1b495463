"""Receivers whose names are looked up slowly, or not at all: only their own user waits."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.api import THREE_VALUES, running_api
from tests.support.deliveries import end, hooked, sending, settled
from tests.support.ledger import Ledger
from tests.support.receivers import answer, receiver
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.webhooks.repository import State

SILENT = "silent.test"
_look_up = socket.getaddrinfo


class NameServer:
    """What this process asks of its system, with a zone whose server says nothing until the test is over."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.waiting = 0
        self.most_waiting = 0
        self._lock = threading.Lock()

    def look_up(self, host: Any, *arguments: Any, **named: Any) -> Any:
        if not str(host).endswith(SILENT):
            return _look_up("127.0.0.1" if str(host).endswith(".test") else host, *arguments, **named)
        with self._lock:
            self.waiting += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
        self.over.wait()
        with self._lock:
            self.waiting -= 1
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


@contextmanager
def _name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server.look_up)
    try:
        yield server
    finally:
        server.over.set()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    with _name_server(monkeypatch) as server:
        yield server


@pytest.fixture
def calling(settings: Settings) -> Settings:
    """Settings of a sender that may call the receivers of tests, and looks often."""
    quick = {"webhook_allow_private": True, "webhook_timeout_s": 60.0, "dispatch_interval_s": 0.05}
    return settings.model_copy(update=quick)


def test_a_silent_name_server_of_one_user_delays_nobody_else(
    ledger: Ledger, calling: Settings, names: NameServer
) -> None:
    with receiver(answer(204)) as target:
        for number in range(40):
            end(ledger, hooked(ledger, f"http://a{number}.{SILENT}/", owner="ada"))
        with sending(calling, (3600.0,)):
            until(lambda: names.waiting >= 2)  # ada's turn comes first
            for number in range(10):
                last = hooked(ledger, target.url(f"b{number}.receiver.test"), owner="bob")
                end(ledger, last)
                # Nothing but a free thread lets this through: the silent look-ups last until the test is over.
                assert settled(ledger, last).state is State.DELIVERED
            assert names.most_waiting <= 2


def test_a_look_up_without_an_answer_ends_at_its_deadline_and_says_so(
    ledger: Ledger, calling: Settings, names: NameServer
) -> None:
    with sending(calling, ()):
        job_id = hooked(ledger, f"http://{SILENT}/")
        end(ledger, job_id)
        deliveries = settled(ledger, job_id)
    assert not names.over.is_set()
    assert deliveries.attempts[0].error == f"the receiver cannot be reached: {SILENT} was not looked up within 5 s"


def test_a_users_own_look_ups_go_on_when_the_name_server_is_back(
    ledger: Ledger, calling: Settings, names: NameServer
) -> None:
    with receiver(answer(204)) as target, sending(calling, (0.1,) * 100):
        slow = [hooked(ledger, f"http://a{number}.{SILENT}/") for number in range(4)]
        for job_id in slow:
            end(ledger, job_id)
        until(lambda: names.waiting >= 2)
        names.over.set()
        job_id = hooked(ledger, target.url("a.receiver.test"))
        end(ledger, job_id)
        assert settled(ledger, job_id).state is State.DELIVERED


def test_a_sender_stops_at_once_while_names_are_looked_up(ledger: Ledger, calling: Settings, names: NameServer) -> None:
    with sending(calling):
        end(ledger, hooked(ledger, f"http://{SILENT}/"))
        until(lambda: names.waiting)
    # asyncio waits for the threads of its own executor; the sender's thread would then stay until the look-up ends.
    until(lambda: "webhooks" not in {thread.name for thread in threading.enumerate()})
    assert names.waiting == 1


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("a" * 64 + ".example.org", "has a part of 64 characters in its host name"),
        ("example." + "ü" * 60, "has a part of 66 characters in its host name"),
        (".".join(["a" * 60] * 5), "has a host name of 304 characters"),
        ("example..org", "nothing between two dots"),
        ("192.0.0.8", "private"),
        ("192.88.99.1", "private"),
        ("[3fff::1]", "private"),
        ("[5f00::1]", "private"),
        ("[::ffff:192.88.99.1]", "private"),
        ("[64:ff9b::192.0.0.8]", "private"),
        ("[2002:c058:6301::1]", "private"),
        ("[::ffff:0:127.0.0.1]", "private"),
    ],
)
def test_a_host_that_cannot_or_must_not_be_called_is_refused_at_submission(
    settings: Settings, host: str, message: str
) -> None:
    with running_api(settings) as api:
        refused = api.client().post("/v1/jobs", json={**THREE_VALUES, "webhook": {"url": f"http://{host}/"}})
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert error["field"] == "webhook.url"
    assert message in error["message"]
