"""Jobs while blows fall: they are submitted from a machine of the user, by turns to either api, and again with the same
key wherever no answer came. At the end every job must have ended once, with the right value."""

import random
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
from psycopg.rows import dict_row

from benchmarks.hosts.lab import Machine, until
from benchmarks.hosts.stage import Stage

PATIENCE_S = 180.0
"""Nothing that the drill waits for may take longer."""
_ANSWER_S = 8.0
_UPLOADED = 20_000
"""How many numbers an uploaded array has."""
_HELD_FROM = 10_001
"""The numbers of elements of jobs that wait at a gate begin here; no other job has one of the next ten thousand."""


class Wrong(AssertionError):
    """A job was lost, ended twice, or has another value than it must have."""


@dataclass
class Drill:
    """The jobs of one drill, and what is known of them."""

    stage: Stage
    expected: dict[UUID, float] = field(default_factory=dict)
    resubmitted: int = 0
    elsewhere_s: list[float] = field(default_factory=list)
    """For each job that a machine lost: how many seconds later it ran on another one."""
    _held: Iterator[int] = field(default_factory=lambda: count(_HELD_FROM))
    _gates: dict[UUID, int] = field(default_factory=dict)
    _chance: random.Random = field(default_factory=lambda: random.Random(17))
    _uploaded: dict[str, float] = field(default_factory=dict)
    _clients: dict[str, httpx.Client] = field(default_factory=dict)
    _observer: "psycopg.Connection[dict[str, Any]] | None" = None

    # --- the user

    def submit(self, jobs: int) -> None:
        """Submit so many jobs of several kinds and sizes."""
        for _ in range(jobs):
            match self._chance.randrange(4):
                case 2 if self._uploaded:
                    dataset_id = self._chance.choice(list(self._uploaded))
                    self._submit({"type": "dataset", "id": dataset_id}, self._uploaded[dataset_id])
                case 0:
                    values = [float(self._chance.randrange(1000)) for _ in range(self._chance.randrange(1, 50))]
                    self._submit({"type": "values", "values": values}, sum(values))
                case 1:
                    self._submit_arange(self._chance.randrange(1, 2000))
                case _:
                    self._submit_arange(self._chance.randrange(20_000, 500_000))

    def upload(self, datasets: int) -> None:
        """Upload so many arrays, to either api."""
        for _ in range(datasets):
            numbers = [float(self._chance.randrange(1000)) for _ in range(_UPLOADED)]
            body = struct.pack(f"<{_UPLOADED}d", *numbers)
            answer = self.request("POST", "/v1/datasets?dtype=float64", content=body)
            self._uploaded[answer.json()["id"]] = sum(numbers)

    def upload_refused_by(self, machine: Machine) -> bool:
        """Whether the api of a machine says that its disk has no room for an upload."""
        answer = self._client(machine.name).post("/v1/datasets?dtype=uint8", content=bytes(1000))
        return answer.status_code == httpx.codes.INSUFFICIENT_STORAGE

    def _submit_arange(self, n: int) -> UUID:
        source = {"type": "generate", "distribution": "arange", "n": n, "dtype": "float64"}
        return self._submit(source, float(n * (n - 1) // 2))

    def _submit(self, source: Mapping[str, object], value: float) -> UUID:
        spec = {"kind": "reduce", "op": "sum", "source": source, "timeout_s": 900}
        answer = self.request("POST", "/v1/jobs", json=spec, headers={"Idempotency-Key": str(uuid4())})
        job_id = UUID(answer.json()["id"])
        self.expected[job_id] = value
        return job_id

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request to one api, and to the other where no answer comes, until one says that it is done."""
        give_up = time.monotonic() + PATIENCE_S
        names = list(self.stage.apis)
        self._chance.shuffle(names)
        last: object = None
        for name in (names * 1000)[:1000]:
            if time.monotonic() > give_up:
                break
            try:
                answer = self._client(name).request(method, path, **options)
            except httpx.TransportError as error:
                last = error
            else:
                if answer.is_success:
                    return answer
                if answer.status_code < 500 and answer.status_code not in (409, 429):
                    raise Wrong(f"{method} {path}: {answer.status_code} {answer.text}")
                last = answer.text
            self.resubmitted += 1
            time.sleep(0.2)
        raise TimeoutError(f"{method} {path} was not answered: {last!r}")

    def _client(self, name: str) -> httpx.Client:
        if name not in self._clients:
            headers = {"Authorization": f"Bearer {self.stage.token}"}
            timeout = httpx.Timeout(_ANSWER_S, connect=1.0)
            self._clients[name] = httpx.Client(base_url=self.stage.apis[name], headers=headers, timeout=timeout)
        return self._clients[name]

    # --- the observer, who sees Postgres past the wire

    def rows(self, statement: str, *values: object) -> list[dict[str, Any]]:
        """The rows of a statement; it is tried again while Postgres is away."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                if self._observer is None:
                    self._observer = psycopg.connect(
                        self.stage.store.observer_url, autocommit=True, row_factory=dict_row, connect_timeout=2
                    )
                cursor = self._observer.execute(statement, values)
                return cursor.fetchall() if cursor.description else []
            except psycopg.OperationalError:
                self._observer = None
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.1)

    def job(self, job_id: UUID) -> dict[str, Any]:
        columns = "status, worker, attempt, lease_expires_at, started_at"
        [row] = self.rows(f"select {columns} from jobs where id = %s", job_id)  # noqa: S608 (no value is in it)
        return row

    def until(self, job_id: UUID, what: str, *, within_s: float = PATIENCE_S, **columns: object) -> float:
        """Wait until a job's row says so."""

        def says_so() -> bool:
            row = self.job(job_id)
            return all(row[name] == value for name, value in columns.items())

        return until(says_so, within_s, f"job {job_id} {what}: {columns}")

    def until_ready(self, machine: Machine, within_s: float = PATIENCE_S) -> None:
        """Wait until the worker of a machine lives by Postgres, and is ready for jobs."""
        ready = "select id from workers where id = %s and expires_at > now() and state in ('idle', 'running')"
        until(lambda: bool(self.rows(ready, worker_of(machine))), within_s, f"the worker of {machine.name} is ready")

    def leader(self) -> Machine:
        """The machine of the dispatcher that leads."""
        leading: list[Machine] = []
        asked = """select host(client_addr) as address from lead
                   join pg_stat_activity on pg_stat_activity.pid = lead.pid where holder is not null"""

        def leads() -> bool:
            addresses = [row["address"] for row in self.rows(asked)]
            leading[:] = [each for each in self.stage.lab.machines if each.address in addresses]
            return bool(leading)

        until(leads, PATIENCE_S, "a dispatcher leads")
        return leading[0]

    # --- jobs that a machine is in the middle of

    def hold(self, machine: Machine) -> UUID:
        """A job that the worker of this machine runs, and that ends when its gate is opened."""
        n = next(self._held)
        self.stage.gates.close(n)
        others = [worker_of(other) for other in self.stage.workers if other is not machine]
        for other in others:
            self.request("POST", f"/v1/workers/{other}/drain")
        try:
            job_id = self._submit_arange(n)
            self._gates[job_id] = n
            self.until(job_id, "is held", status="running", worker=worker_of(machine))
        finally:
            for other in others:
                self.request("POST", f"/v1/workers/{other}/resume")
        return job_id

    def now(self) -> datetime:
        """The time by the clock of Postgres."""
        [row] = self.rows("select clock_timestamp() as now")
        moment: datetime = row["now"]
        return moment

    def until_elsewhere(self, job_id: UUID, lost: Machine, since: datetime) -> float:
        """Wait until a job that a machine lost runs on another one; how many seconds after `since` it began to."""

        def elsewhere() -> bool:
            row = self.job(job_id)
            return bool(row["status"] == "running" and row["worker"] != worker_of(lost))

        until(elsewhere, PATIENCE_S, f"job {job_id} runs elsewhere than on {lost.name}")
        self.elsewhere_s.append((self.job(job_id)["started_at"] - since).total_seconds())
        return self.elsewhere_s[-1]

    def until_renewed(self, job_id: UUID, times: int) -> None:
        """Wait until the worker of a job has renewed its lease so often."""
        seen: set[object] = set()

        def renewed() -> bool:
            seen.add(self.job(job_id)["lease_expires_at"])
            return len(seen) > times

        until(renewed, PATIENCE_S, f"the lease of job {job_id} is renewed")

    def release(self, job_id: UUID) -> None:
        """Open the gate of a job, and wait until it has ended."""
        self.stage.gates.open(self._gates.pop(job_id))
        self.until(job_id, "ends", status="succeeded")

    # --- what must be true at the end

    def settle(self) -> None:
        """Wait until all jobs have ended, and check each of them. Raises TimeoutError and Wrong."""
        open_jobs = "select count(*) as count from jobs where status in ('queued', 'running')"
        until(lambda: self.rows(open_jobs)[0]["count"] == 0, 2 * PATIENCE_S, "all jobs have ended", every_s=0.2)
        ended = {row["id"]: row for row in self.rows(_ENDED)}
        if lost := self.expected.keys() - ended.keys():
            raise Wrong(f"lost: {sorted(map(str, lost))}")
        if twice := ended.keys() - self.expected.keys():
            raise Wrong(f"accepted twice, or by nobody's request: {sorted(map(str, twice))}")
        for job_id, value in self.expected.items():
            row = ended[job_id]
            if row["status"] != "succeeded" or row["value"] != value:
                raise Wrong(f"job {job_id} is {row['status']} with {row['value']}, not {value}: {row['error']}")
            if row["ends"] != 1 or row["points"] != 1:
                raise Wrong(f"job {job_id} ended {row['ends']} times, and was measured {row['points']} times")

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        if self._observer is not None:
            with suppress(psycopg.Error):
                self._observer.close()


_ENDED = """
select id, status, error, (result ->> 'value')::float8 as value,
    (select count(*) from job_events where job_id = jobs.id and type in ('succeeded', 'failed', 'cancelled')) as ends,
    (select count(*) from measurements where job_id = jobs.id) as points
from jobs
"""


def worker_of(machine: Machine) -> str:
    """The name of the worker on a machine."""
    return f"{machine.name}:cpu"
