"""A Postgres that stalls, and a clock that steps, take no job from a worker that lives.

A step of the server's clock is made by moving all that is stored the other way: that is how it looks to each statement.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import psutil
import pytest
from redis import Redis
from sqlalchemy import Connection, Table, update

from tests.support.figures import Figures
from tests.support.gated_service import LEASE_S, N, gated_service
from tests.support.ledger import Ledger
from tests.support.servers import Servers
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.tables.jobs import jobs, workers
from warpfold.app.tables.service import lead
from warpfold.contract.states import Status
from warpfold.worker.boot import describe
from warpfold.worker.embedded import EmbeddedPostgres
from warpfold.worker.queue import rq_id

_TIMES: dict[Table, tuple[str, ...]] = {
    jobs: ("created_at", "started_at", "dispatched_at", "lease_expires_at"),
    workers: ("heartbeat_at", "expires_at", "started_at"),
    lead: ("renewed_at",),
}


def step_clock(connection: Connection, seconds: float) -> None:
    """As if the server's clock had been set forward by so much, or back."""
    for table, names in _TIMES.items():
        connection.execute(update(table).values({name: table.c[name] - timedelta(seconds=seconds) for name in names}))


@contextmanager
def stalled(server: EmbeddedPostgres) -> Iterator[None]:
    """All of its processes are stopped."""
    first = psutil.Process(server.pid)
    first.suspend()
    others = first.children(recursive=True)
    for process in others:
        process.suspend()
    try:
        yield
    finally:
        for process in (first, *others):
            process.resume()


def test_a_stalled_postgres_takes_no_job_from_a_worker_that_lives(
    fragile_settings: Settings, servers: Servers, log: Path
) -> None:
    database = BlockingDatabase(servers.database_url, application="test")
    ledger = Ledger(database)
    with gated_service(fragile_settings, log) as (service, gates):
        job_id = gates.submit(ledger, N)
        ledger.until(job_id, "status", Status.RUNNING)
        with stalled(servers.postgres):
            time.sleep(2 * LEASE_S)
        _watch_it_run(ledger, job_id, 2 * LEASE_S)
        gates.open(N)
        ledger.wait([job_id], 60)
        assert ledger.history(job_id) == ["submitted", "started", "succeeded"]
        assert "taken back" not in log.read_text()
        assert service.deaths == {}
    database.close()


@pytest.mark.parametrize("seconds", [600.0, -600.0])
def test_a_step_of_the_clock_takes_no_job_and_delays_none(
    settings: Settings, log: Path, ledger: Ledger, figures: Figures, seconds: float
) -> None:
    with gated_service(settings, log) as (service, gates), Redis.from_url(settings.redis_url) as redis:
        running, waiting = gates.submit(ledger, N), gates.submit(ledger, N)
        ledger.until(running, "status", Status.RUNNING)
        letter = f"rq:job:{rq_id(waiting, 1)}"
        until(lambda: bool(redis.exists(letter)))
        ledger.database.run(step_clock, seconds)
        redis.flushall()
        with figures.timed(f"clock step of {seconds:+g} s and FLUSHALL: until a waiting job is sent again"):
            until(lambda: bool(redis.exists(letter)))
        assert redis.lrange(f"rq:queue:{describe('cpu').id}", 0, -1) == [rq_id(waiting, 1).encode()]
        _watch_it_run(ledger, running, LEASE_S)
        gates.open(N)
        ledger.wait([running, waiting], 60)
        for job_id in (running, waiting):
            assert ledger.history(job_id) == ["submitted", "started", "succeeded"]
        assert service.deaths == {}


def _watch_it_run(ledger: Ledger, job_id: UUID, seconds: float) -> None:
    """It goes on running, and its worker goes on renewing its lease, for so long at least."""
    until = time.monotonic() + seconds
    marks: set[object] = set()
    while time.monotonic() < until or len(marks) < 3:
        assert time.monotonic() < until + 120
        marks.add(ledger.column(job_id, "lease_expires_at"))
        assert (ledger.column(job_id, "attempt"), ledger.column(job_id, "status")) == (1, Status.RUNNING)
        time.sleep(0.05)
