"""A job follows an upload, and in the middle something is killed, cancelled or full: the upload goes on, the job ends
once, and nothing stays behind."""

import io
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import numpy as np
import psutil
import pytest

from tests.support import processes
from tests.support.fleet import DISPATCHER, WORKER, Fleet, fleet
from tests.support.gated_service import QUICK
from tests.support.ledger import Ledger, succeeded_events
from tests.support.waiting import until
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.config import Settings
from warpfold.app.datasets.store import Store
from warpfold.app.db import BlockingDatabase
from warpfold.contract.states import Status

MIB = 1 << 20
N = 5 * MIB
"""Elements of an array: its 40 MiB are two sections and a half."""

SENT = 24 * MIB
"""What has come when the blow falls: the job has reduced one section and waits for the second."""

PART = {"Content-Type": "application/partial-upload", "Upload-Complete": "?1"}


def npy(first: int) -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(first, first + N, dtype=np.float64))
    return file.getvalue()


def answer(first: int) -> float:
    """The sum of the array, which float64 holds."""
    return float(N * first + N * (N - 1) // 2)


@dataclass
class Following:
    """An upload of which SENT bytes have come, and the job that has reduced a part of it."""

    service: "Service"
    body: bytes
    path: str
    wire: socket.socket
    job_id: UUID

    def offset(self) -> int:
        """How many bytes the api has."""
        return int(self.service.http.head(self.path).headers["Upload-Offset"])

    def send_rest(self) -> bytes:
        """Send the rest on the same line; how the answer begins."""
        self.wire.sendall(self.body[SENT:])
        return self.wire.recv(12)

    def resume(self) -> int:
        """Send the rest by another request; the status of its answer."""
        offset = self.offset()
        headers = {**PART, "Upload-Offset": str(offset)}
        return self.service.http.patch(self.path, content=self.body[offset:], headers=headers).status_code


@dataclass
class Service:
    """The processes at work, and a user."""

    fleet: Fleet
    ledger: Ledger
    http: httpx.Client
    port: int

    @contextmanager
    def following(self, first: int) -> Iterator[Following]:
        """A job in the middle of an array that is on its way."""
        body = npy(first)
        path = self.http.post("/v1/uploads", headers={"Upload-Length": str(len(body))}).headers["Location"]
        lines: Mapping[str, Any] = {**PART, "Upload-Offset": 0, "Host": "x", "Content-Length": len(body)}
        lines = {**lines, "Authorization": self.http.headers["Authorization"]}
        head = f"PATCH {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        spec = {"kind": "reduce", "op": "sum", "source": {"type": "upload", "id": path.rpartition("/")[2]}}
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as wire:
            wire.sendall(head.encode() + b"\r\n" + body[:SENT])
            job_id = UUID(self.http.post("/v1/jobs", json=spec).json()["id"])
            yield self._in_the_middle(Following(self, body, path, wire, job_id))

    def _in_the_middle(self, following: Following) -> Following:
        until(lambda: following.offset() == SENT)
        self.until_reduced(following.job_id, 1)
        return following

    def until_reduced(self, job_id: UUID, attempt: int) -> None:
        """Until an attempt at a job has reduced some of what has come."""

        def reduced() -> bool:
            job = self.show(job_id)
            return job["attempt"] == attempt and bool(job["progress"] and job["progress"]["done"])

        until(reduced, 120, describe=lambda: self.show(job_id))

    def show(self, job_id: UUID) -> Any:
        return self.http.get(f"/v1/jobs/{job_id}").json()

    def ended_once(self, job_id: UUID, value: float, attempt: int) -> None:
        """The job has ended, once, by its attempt of that number, and with the value."""
        self.ledger.wait([job_id], 120)
        job = self.ledger.job(job_id)
        assert (job.status, job.attempt) == (Status.SUCCEEDED, attempt), job.error
        assert self.ledger.result(job_id)["value"] == value
        assert self.ledger.points(job_id) == 1
        assert self.ledger.database.run(succeeded_events, [job_id]) == {job_id: 1}

    def nothing_stays(self) -> None:
        """No file of an upload is there but the marks, which go when they are old; and the slot takes the next job."""
        settings = self.fleet.settings
        folders = [settings.datasets_dir() / name for name in ("incoming", "partial")]
        left = [path for folder in folders for path in folder.iterdir()]
        assert all(path.name.endswith(".finished") for path in left), left
        for path in left:
            os.utime(path, (0, 0))
        Store(settings.datasets_dir()).remove_abandoned(0.0)
        assert [path for folder in folders for path in folder.iterdir()] == []
        spec = {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1.0, 2.0]}}
        next_job = self.http.post("/v1/jobs", json=spec, headers={"Prefer": "wait=60"}).json()
        assert next_job["status"] == "succeeded", next_job


@pytest.fixture
def service(settings: Settings, tmp_path: Path) -> Iterator[Service]:
    database = BlockingDatabase(settings.database_url, application="test")
    token = database.run(create_token, "ann")
    port = processes.free_port()
    api = ("warpfold.app", "--port", str(port))
    quick = settings.model_copy(update=QUICK)
    headers = {"Authorization": f"Bearer {token}"}
    with (
        fleet(quick, tmp_path / "log", api=api, dispatcher=DISPATCHER, worker=WORKER) as running,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as http,
    ):
        for words in ("child ready", '"event": "leading"'):
            running.wait_until_logged(words)
        until(lambda: processes.is_ready(http), 120, describe=lambda: running.log.read_text()[-2000:])
        yield Service(running, Ledger(database), http, port)
    database.close()


def test_kill_9_of_the_child_the_worker_or_the_api_costs_time_alone(service: Service) -> None:
    blows: list[Callable[[], object]] = [
        lambda: service.fleet.child("worker").kill(),
        lambda: service.fleet.kill("worker"),
    ]
    for first, blow in enumerate(blows):
        with service.following(first) as following:
            blow()
            service.until_reduced(following.job_id, 2)
            assert following.send_rest() == b"HTTP/1.1 201"
            service.ended_once(following.job_id, answer(first), 2)
    with service.following(len(blows)) as following:
        service.fleet.kill("api")
        until(lambda: service.fleet.deaths.get("api") and processes.is_ready(service.http), 120)
        assert service.show(following.job_id)["status"] == "running"
        assert following.resume() == 201
        service.ended_once(following.job_id, answer(len(blows)), 1)
    assert service.fleet.deaths == {"worker": 1, "api": 1}
    service.nothing_stays()


def test_a_cancelled_job_frees_its_slot_and_leaves_the_upload_alone(service: Service) -> None:
    with service.following(7) as following:
        service.ledger.cancel(following.job_id)
        service.ledger.wait([following.job_id], 60)
        assert service.ledger.job(following.job_id).status is Status.CANCELLED
        assert following.offset() == SENT
        assert following.send_rest() == b"HTTP/1.1 201"
    service.nothing_stays()


def test_a_disk_that_takes_no_more_stops_the_upload_and_its_job_waits_for_it(service: Service) -> None:
    api = service.fleet.process("api")
    with service.following(9) as following:
        api.rlimit(psutil.RLIMIT_FSIZE, (SENT + MIB, psutil.RLIM_INFINITY))
        assert following.send_rest() == b"HTTP/1.1 503"
        assert SENT <= following.offset() <= SENT + MIB
        assert service.show(following.job_id)["status"] == "running"
        assert following.resume() == 503
        api.rlimit(psutil.RLIMIT_FSIZE, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))
        assert following.resume() == 201
        service.ended_once(following.job_id, answer(9), 1)
    service.nothing_stays()
