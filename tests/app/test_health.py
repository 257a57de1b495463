from collections.abc import Iterator

import httpx
import pytest

from tests.app.api import WORKER, Api, running_api
from tests.servers import Servers
from warpfold.app.config import Settings
from warpfold.app.jobs import leases


@pytest.fixture
def fragile(fragile_settings: Settings) -> Iterator[Api]:
    with running_api(fragile_settings) as running:
        yield running


def checks(api: Api) -> dict[str, object]:
    response = httpx.get(f"{api.url}/readyz")
    assert response.status_code == 503
    assert response.headers["Content-Type"] == "application/problem+json"
    found: dict[str, object] = response.json()["checks"]
    return found


def report(api: Api, state: str, lease_s: float = 60.0) -> None:
    api.database.run(leases.report, WORKER, state, None, lease_s)


def test_an_api_is_alive_whatever_else_is(fragile: Api, servers: Servers) -> None:
    servers.postgres.stop()
    servers.redis.stop()
    assert httpx.get(f"{fragile.url}/healthz").json() == {"status": "ok"}


def test_it_is_ready_with_postgres_redis_and_a_live_worker(api: Api) -> None:
    report(api, "idle")
    response = httpx.get(f"{api.url}/readyz")
    assert (response.status_code, response.json()) == (200, {"postgres": "ok", "redis": "ok", "workers": 1})


@pytest.mark.parametrize(("state", "lease_s"), [("starting", 60.0), ("stopped", 60.0), ("idle", -1.0)])
def test_a_worker_that_could_take_nothing_does_not_count(api: Api, state: str, lease_s: float) -> None:
    report(api, state, lease_s)
    assert checks(api) == {"postgres": "ok", "redis": "ok", "workers": 0}


def test_it_is_not_ready_without_redis(fragile: Api, servers: Servers) -> None:
    report(fragile, "idle")
    servers.redis.stop()
    assert checks(fragile) == {"postgres": "ok", "redis": "unreachable", "workers": 1}


def test_it_is_not_ready_without_postgres(fragile: Api, servers: Servers) -> None:
    report(fragile, "idle")
    servers.postgres.stop()
    assert checks(fragile) == {"postgres": "unreachable", "redis": "ok", "workers": 0}
