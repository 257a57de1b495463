"""A running api for tests: uvicorn on a free port, in a thread, with users who have tokens."""

import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import httpx
import uvicorn
from fastapi import FastAPI

from tests.support.waiting import until
from warpfold.app.__main__ import server_config
from warpfold.app.auth.access_tokens import Role, create_token
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.app.main import create_app
from warpfold.app.notifications import Notifications
from warpfold.app.polls import PollCache
from warpfold.contract.kinds.reduce import ReduceResult
from warpfold.contract.measurement import Measurement
from warpfold.worker.leadership import Leadership

WORKER = WorkerInfo("gpu1:cpu", "cpu", "cpu", "gpu1", 42, "0.1.0", None)
RESULT: Mapping[str, Any] = ReduceResult.model_json_schema()["examples"][0]
THREE_VALUES: Mapping[str, Any] = {
    "kind": "reduce",
    "op": "sum",
    "source": {"type": "values", "values": [1e8, 1, -1e8], "dtype": "float32"},
}

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Plain HTTP: loading the machine's certificates for every client would take longer than most tests."""


@dataclass
class Api:
    """A running api: clients of its users, and methods that do to its database what a worker does."""

    url: str
    settings: Settings
    database: BlockingDatabase
    tokens: dict[str, str]
    notifications: Notifications
    _clients: list[httpx.Client] = field(default_factory=list)

    def client(self, user: str = "ann", **headers: str) -> httpx.Client:
        """An HTTP client with the token of "ann", "bob" (users) or "root" (an admin)."""
        made = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.tokens[user]}", **headers},
            timeout=300,  # the machine may be busy; a request that hangs ends with its test
            verify=NO_TLS,
        )
        self._clients.append(made)
        return made

    def submit(self, user: str = "ann", **changes: Any) -> str:
        """Submit three values, with `changes` to the spec; returns the job's id."""
        response = self.client(user).post("/v1/jobs", json={**THREE_VALUES, **changes})
        assert response.status_code == 202, response.text
        return str(response.json()["id"])

    def claim(self, job_id: str, attempt: int = 1) -> Lease:
        """Do what a worker does when it begins."""
        lease = self.database.run(leases.claim, UUID(job_id), attempt, WORKER.id, 60.0)
        assert lease is not None
        return lease

    def finish(self, lease: Lease, result: Mapping[str, Any] = RESULT, points: Sequence[Measurement] = ()) -> None:
        """Do what a worker does when it has a result."""
        assert self.database.run(leases.succeed, [(lease, Success(result, tuple(points)))])

    def store(self, *points: Measurement) -> str:
        """A job that succeeded with these measurements; its id."""
        job_id = self.submit()
        self.finish(self.claim(job_id), points=points)
        return job_id

    def until_watched(self, *job_ids: str, by: int = 1) -> None:
        """Wait until the api holds this number of requests for each of the jobs."""
        until(lambda: not any(len(self.notifications._watches.get(job_id, ())) < by for job_id in job_ids))

    def close_clients(self) -> None:
        """Hang up, streams included."""
        for client in self._clients:
            client.close()
        self._clients.clear()

    def close(self) -> None:
        self.close_clients()
        self.database.close()


def until_refused(ask: Callable[[], httpx.Response], status: int = 401) -> None:
    """Wait until a change of access has reached the api, by asking until it refuses."""
    until(lambda: ask().status_code == status)


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """The address of an api that runs until the end of the block."""
    with serving(create_app(settings)) as url:
        yield url


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The same of an app that was made before."""
    server = uvicorn.Server(server_config(app))
    thread = threading.Thread(target=server.run, name="api")
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the api did not start"
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive(), "the api did not stop"


@contextmanager
def running_api(settings: Settings) -> Iterator[Api]:
    """An api with its users, until the end of the block."""
    database = BlockingDatabase(settings.database_url, application="test")
    tokens = {
        "ann": database.run(create_token, "ann"),
        "bob": database.run(create_token, "bob"),
        "root": database.run(create_token, "root", Role.ADMIN),
    }
    app = create_app(settings)
    # A test asks right after what it did, and for another queue than the test before.
    app.state.context = replace(app.state.context, queue=PollCache(0.0))
    with serving(app) as url:
        api = Api(url, settings, database, tokens, app.state.context.notifications)
        try:
            yield api
        finally:
            api.close()


@contextmanager
def leading(api: Api, lasts_s: float = 60.0) -> Iterator[Leadership]:
    """A dispatcher that leads, and renews nothing."""
    with Leadership(api.settings.database_url, "test dispatcher", lasts_s) as session:
        assert session.won()
        yield session
