import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import httpx
import pytest

from tests.support.api import THREE_VALUES, WORKER, Api, running_api, served
from tests.support.servers import Servers, kill, restart
from tests.support.sse import events
from warpfold.app.auth.access_tokens import list_tokens, revoke_token
from warpfold.app.config import Settings
from warpfold.app.jobs import leases


@pytest.fixture
def fragile(fragile_settings: Settings) -> Iterator[Api]:
    """An api whose servers the test may break."""
    with running_api(fragile_settings) as running:
        yield running


def soon(check: Callable[[], bool], within_s: float = 60.0) -> bool:
    give_up = time.monotonic() + within_s
    while time.monotonic() < give_up:
        if check():
            return True
        time.sleep(0.05)
    return False


def test_jobs_are_accepted_and_cancelled_while_redis_is_down(fragile: Api, servers: Servers) -> None:
    kill(servers.redis)
    job_id = fragile.submit()
    assert fragile.client().post(f"/v1/jobs/{job_id}/cancel").status_code == 202


def test_without_postgres_every_request_is_a_503_problem_with_when_to_try_again(fragile: Api, servers: Servers) -> None:
    http = fragile.client()
    job_id = fragile.submit()
    servers.postgres.stop()
    for response in (
        http.get("/v1/jobs"),
        http.get(f"/v1/jobs/{job_id}"),
        http.get(f"/v1/jobs/{job_id}/result"),
        http.get(f"/v1/jobs/{job_id}/events"),
        http.post("/v1/jobs", json=THREE_VALUES),
        http.post(f"/v1/jobs/{job_id}/cancel"),
        http.get("/v1/workers"),
        http.get("/v1/results"),
        http.get("/metrics"),
    ):
        assert response.status_code == 503, response.text
        assert response.headers["Content-Type"] == "application/problem+json"
        assert int(response.headers["Retry-After"]) >= 1
    assert http.get("/healthz").status_code == 200


def test_it_recovers_by_itself_when_postgres_comes_back(fragile: Api, servers: Servers) -> None:
    http = fragile.client()
    job_id = fragile.submit()
    servers.postgres.stop()
    assert http.get("/v1/jobs").status_code == 503
    servers.postgres.start()
    assert http.get(f"/v1/jobs/{job_id}").status_code == 200
    assert http.post("/v1/jobs", json=THREE_VALUES).status_code == 202


@pytest.mark.parametrize("end", [restart, kill])
def test_a_restart_of_postgres_between_two_requests_is_not_noticed(
    fragile: Api, servers: Servers, end: Callable[..., None]
) -> None:
    http = fragile.client()
    job_id = fragile.submit()
    # All connections of the pools are made, and all of them die.
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: http.get(f"/v1/jobs/{job_id}"), range(64)))
        list(pool.map(lambda _: http.post("/v1/jobs", json=THREE_VALUES), range(64)))
    end(servers.postgres)
    servers.postgres.start()
    codes = [http.get(f"/v1/jobs/{job_id}").status_code for _ in range(20)]
    codes += [http.post("/v1/jobs", json=THREE_VALUES).status_code for _ in range(20)]
    assert codes == [200] * 20 + [202] * 20


@pytest.mark.usefixtures("without_timer")
def test_a_held_poll_learns_of_what_happened_after_postgres_came_back(fragile: Api, servers: Servers) -> None:
    job_id = fragile.submit()
    restart(servers.postgres)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(lambda: fragile.client().get(f"/v1/jobs/{job_id}", headers={"Prefer": "wait=50"}))
        fragile.until_watched(job_id)
        assert fragile.database.run_patiently(30, leases.claim, UUID(job_id), 1, WORKER.id, 60.0)
        assert held.result(30).json()["status"] == "running"


def test_a_stream_outlives_a_restart_of_postgres(fragile: Api, servers: Servers) -> None:
    job_id = fragile.submit()
    with fragile.client().stream("GET", f"/v1/jobs/{job_id}/events") as response:
        sent = events(response)
        assert next(sent).event == "submitted"
        servers.postgres.stop()
        time.sleep(1.5)
        servers.postgres.start()
        lease = fragile.database.run_patiently(30, leases.claim, UUID(job_id), 1, WORKER.id, 60.0)
        assert lease is not None
        fragile.finish(lease)
        assert [one.event for one in sent] == ["started", "succeeded"]


@pytest.mark.usefixtures("remembered")
def test_a_token_revoked_while_nobody_listened_is_refused_soon(fragile: Api, servers: Servers) -> None:
    http = fragile.client()
    assert http.get("/v1/jobs").status_code == 200
    restart(servers.postgres)
    [token] = [one for one in fragile.database.run_patiently(30, list_tokens) if one.user == "ann"]
    fragile.database.run(revoke_token, token.id)
    assert soon(lambda: http.get("/v1/jobs").status_code == 401)


def test_an_api_that_starts_before_postgres_waits_for_it(fragile_settings: Settings, servers: Servers) -> None:
    with running_api(fragile_settings) as first:
        token = first.tokens["ann"]
        job_id = first.submit()
    servers.postgres.stop()
    # running_api makes tokens first, and so needs the database: start the server itself, as a process does.
    with served(fragile_settings) as url:
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert httpx.get(f"{url}/v1/jobs/{job_id}", headers=headers).status_code == 503
        servers.postgres.start()
        assert soon(lambda: httpx.get(f"{url}/v1/jobs/{job_id}", headers=headers).status_code == 200)
