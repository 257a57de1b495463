"""A whole service for tests of clients: api, dispatcher and CPU worker as processes."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support import processes
from tests.support.api import NO_TLS
from tests.support.waiting import until
from warpfold.app.auth.access_tokens import Role, create_token
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.client.api import Client

PATIENT_S = 90.0
"""The lease of a service whose answers are compared letter by letter. A worker or a child that a loaded machine keeps
from its heartbeat for the default of 15 s counts as lost: then its job runs again, and a command says that no slot is
there."""


@dataclass(frozen=True)
class Service:
    """Where it is, and a token of its only user, "ada", an admin."""

    url: str
    token: str
    settings: Settings

    def client(self) -> Client:
        return Client(self.url, self.token)


@contextmanager
def running_service(settings: Settings, log: Path) -> Iterator[Service]:
    """A service that can run jobs, until the end of the block."""
    database = BlockingDatabase(settings.database_url, application="test")
    token = database.run(create_token, "ada", Role.ADMIN)
    database.close()
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    running = [
        processes.start(settings, log, "warpfold.app", "--host", "127.0.0.1", "--port", str(port)),
        processes.start(settings, log, "warpfold.worker.dispatcher"),
        processes.start(settings, log, "warpfold.worker", "--slot", "cpu"),
    ]
    try:
        until(
            lambda: _ready(url) or any(process.poll() is not None for process in running),
            120,
            describe=lambda: log.read_text()[-3000:],
        )
        assert all(process.poll() is None for process in running), log.read_text()[-3000:]
        yield Service(url, token, settings)
    finally:
        processes.end(running)


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", verify=NO_TLS).status_code == 200
    except httpx.TransportError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
