import time
from collections.abc import Iterator
from datetime import timedelta

import httpx
import psutil
import pytest
from sqlalchemy import Connection, update

from tests.support.api import WORKER, Api, leading, running_api
from tests.support.servers import Servers
from tests.support.waiting import until
from warpfold.app import health
from warpfold.app.config import Settings
from warpfold.app.jobs.workers import report as report_worker
from warpfold.app.tables.jobs import workers
from warpfold.app.tables.service import lead


@pytest.fixture
def fragile(fragile_settings: Settings) -> Iterator[Api]:
    with running_api(fragile_settings) as running:
        yield running


def checks(api: Api) -> dict[str, object]:
    response = httpx.get(f"{api.url}/readyz", timeout=30.0)  # it waits 2 s for each server, and a loaded machine longer
    assert response.status_code == 503
    assert response.headers["Content-Type"] == "application/problem+json"
    checks: dict[str, object] = response.json()["checks"]
    return checks


def report(api: Api, state: str, lease_s: float = 60.0) -> None:
    api.database.run(report_worker, WORKER, state, None, lease_s)


def _set_back(connection: Connection, seconds: float) -> None:
    """As if the server's clock had been set back: what it wrote lies in the future."""
    ahead = timedelta(seconds=seconds)
    connection.execute(update(lead).values(renewed_at=lead.c.renewed_at + ahead))
    connection.execute(
        update(workers).values(heartbeat_at=workers.c.heartbeat_at + ahead, expires_at=workers.c.expires_at + ahead)
    )


def test_an_api_is_alive_whatever_else_is(fragile: Api, servers: Servers) -> None:
    servers.postgres.stop()
    servers.redis.stop()
    assert httpx.get(f"{fragile.url}/healthz").json() == {"status": "ok"}


def test_it_is_ready_with_postgres_redis_a_live_worker_and_a_leader(api: Api) -> None:
    report(api, "idle")
    with leading(api):
        response = httpx.get(f"{api.url}/readyz")
    assert (response.status_code, response.json()) == (
        200,
        {"postgres": "ok", "redis": "ok", "workers": 1, "dispatcher": "leads"},
    )


def test_it_is_not_ready_where_nobody_leads_or_the_leader_hangs(api: Api) -> None:
    report(api, "idle")
    nobody = {"postgres": "ok", "redis": "ok", "workers": 1, "dispatcher": "none leads"}
    until(lambda: checks(api) == nobody)  # a loaded machine may let servers answer late
    with leading(api, lasts_s=0.01) as session:
        time.sleep(0.02)
        until(lambda: checks(api) == nobody, describe=lambda: "it has not renewed its lead")
        assert httpx.get(f"{api.url}/readyz").json()["detail"] == "Not ready: dispatcher."
        session.close()


@pytest.mark.parametrize("seconds", [600.0, -600.0])
def test_after_a_step_of_the_servers_clock_nobody_is_believed_who_has_not_reported_again(
    api: Api, seconds: float
) -> None:
    report(api, "idle")
    with leading(api):
        api.database.run(_set_back, seconds)
        assert checks(api) == {"postgres": "ok", "redis": "ok", "workers": 0, "dispatcher": "none leads"}
        report(api, "idle")
        assert checks(api)["workers"] == 1


@pytest.mark.parametrize(("state", "lease_s"), [("starting", 60.0), ("stopped", 60.0), ("idle", -1.0)])
def test_a_worker_that_could_take_nothing_does_not_count(api: Api, state: str, lease_s: float) -> None:
    report(api, state, lease_s)
    assert checks(api)["workers"] == 0


def test_it_is_not_ready_without_redis(fragile: Api, servers: Servers) -> None:
    report(fragile, "idle")
    servers.redis.stop()
    with leading(fragile):
        assert checks(fragile) == {"postgres": "ok", "redis": "unreachable", "workers": 1, "dispatcher": "leads"}


def test_it_is_not_ready_without_postgres(fragile: Api, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_PATIENCE_S", 1.0)
    report(fragile, "idle")
    without = {"postgres": "unreachable", "redis": "ok", "workers": 0, "dispatcher": "unknown"}
    assert checks(fragile)["postgres"] == "ok"
    server = psutil.Process(servers.postgres.pid)
    processes = [server, *server.children(recursive=True)]
    try:
        for process in processes:
            process.suspend()
        began = time.monotonic()
        assert checks(fragile) == without
        assert time.monotonic() - began < 8.0, "psycopg waits for ten seconds until a server that hangs has cancelled"
    finally:
        for process in processes:
            process.resume()
    servers.postgres.stop()
    assert checks(fragile) == without
