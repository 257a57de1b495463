"""The database: its addresses, its units of work, and the api that runs on it while servers stop and come back."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import httpx
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from tests.support.api import THREE_VALUES, WORKER, Api, running_api, served
from tests.support.servers import Servers, kill, restart
from tests.support.sse import events
from warpfold.app.auth.access_tokens import list_tokens, revoke_token
from warpfold.app.config import Settings
from warpfold.app.db import DATABASE_LOST, BlockingDatabase, Database, conninfo, database_url
from warpfold.app.jobs import leases


def test_any_scheme_of_postgres_is_taken() -> None:
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        assert database_url(f"{scheme}://u:p@h/d").drivername == "postgresql+psycopg"
        assert conninfo_to_dict(conninfo(f"{scheme}://u:p@h/d")) == {
            "user": "u",
            "password": "p",
            "host": "h",
            "dbname": "d",
        }


def test_a_socket_in_a_folder_with_a_space_is_found_by_libpq_too() -> None:
    words = conninfo("postgresql://us%20er:p%2Bw%20d@/x?host=/home/ada/my%20clone/postgres&sslmode=disable")
    assert conninfo_to_dict(words) == {
        **{"user": "us er", "password": "p+w d", "dbname": "x"},
        **{"host": "/home/ada/my clone/postgres", "sslmode": "disable"},
    }


def write(connection: Connection, fail: bool = False) -> None:
    connection.execute(text("create table if not exists noted (what int)"))
    connection.execute(text("insert into noted values (1)"))
    if fail:
        raise RuntimeError("half way")


def written(connection: Connection) -> int:
    return int(connection.execute(text("select count(*) from noted")).scalar_one())


def test_a_unit_of_work_is_kept_whole_or_not_at_all(database_url: str) -> None:
    async def run() -> int:
        database = Database(database_url, application="test")
        try:
            await database.run(write)
            with pytest.raises(RuntimeError, match="half way"):
                await database.run(write, fail=True)
            return await database.read(written)
        finally:
            await database.close()

    assert asyncio.run(run()) == 1


def test_a_unit_that_meets_a_dead_connection_is_run_again_once(servers: Servers) -> None:
    runs = 0

    def counted(connection: Connection) -> None:
        nonlocal runs
        runs += 1
        connection.execute(text("select 1"))

    async def run() -> None:
        database = Database(servers.database_url, application="test")
        try:
            for work in (database.run, database.read, database.search):
                await work(counted)
                await asyncio.to_thread(restart, servers.postgres)
                await work(counted)
        finally:
            await database.close()

    asyncio.run(run())
    assert runs == 9


def test_without_a_server_it_says_so_soon(servers: Servers) -> None:
    servers.postgres.stop()

    async def run() -> None:
        database = Database(servers.database_url, application="test")
        for work in (database.run, database.read, database.search):
            with pytest.raises(DATABASE_LOST):
                await work(written)

    asyncio.run(run())


def test_a_patient_unit_outlasts_a_restart(servers: Servers) -> None:
    import threading

    database = BlockingDatabase(servers.database_url, application="test")
    database.run(write)
    servers.postgres.stop()
    timer = threading.Timer(0.5, servers.postgres.start)
    timer.start()
    assert database.run_patiently(60, written) == 1
    timer.join()
    servers.postgres.stop()
    with pytest.raises(OperationalError):
        database.run_patiently(0.2, written)
    database.close()


def test_a_connection_that_is_cut_off_is_noticed_on_both_sides_before_a_lease_is_over(
    database_url: str,
) -> None:
    def parameters_of(connection: Connection) -> dict[str, str]:
        parameters: dict[str, str] = connection.connection.driver_connection.info.get_parameters()  # type: ignore[union-attr]
        return parameters

    async def of_the_api() -> dict[str, str]:
        database = Database(database_url, application="test")
        try:
            return await database.run(parameters_of)
        finally:
            await database.close()

    blocking = BlockingDatabase(database_url, application="test")
    for parameters in (asyncio.run(of_the_api()), blocking.run(parameters_of)):
        silent_s = int(parameters["keepalives_idle"]) + (
            int(parameters["keepalives_interval"]) * int(parameters["keepalives_count"])
        )
        lease_s = Settings.model_fields["lease_s"].default
        assert max(silent_s, int(parameters["tcp_user_timeout"]) / 1000) < lease_s
        # These Postgres shows of connections by TCP alone; the socket of a test has none of them.
        for option in ("tcp_keepalives_idle=5", "tcp_user_timeout=8s"):
            assert option in parameters["options"]
    blocking.close()


def test_times_are_utc(database_url: str) -> None:
    database = BlockingDatabase(database_url, application="test")
    zone = database.run(lambda connection: connection.execute(text("show timezone")).scalar_one())
    database.close()
    assert zone == "UTC"


def test_searches_are_planned_for_what_they_look_for_and_the_rest_once(database_url: str) -> None:
    def mode(connection: Connection) -> str:
        return str(connection.execute(text("show plan_cache_mode")).scalar_one())

    async def run() -> list[str]:
        database = Database(database_url, application="test")
        try:
            return [await database.run(mode), await database.read(mode), await database.search(mode)]
        finally:
            await database.close()

    assert asyncio.run(run()) == ["force_generic_plan", "force_generic_plan", "force_custom_plan"]


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
        assert [event.event for event in sent] == ["started", "succeeded"]


@pytest.mark.usefixtures("remembered")
def test_a_token_revoked_while_nobody_listened_is_refused_soon(fragile: Api, servers: Servers) -> None:
    http = fragile.client()
    assert http.get("/v1/jobs").status_code == 200
    restart(servers.postgres)
    [token] = [token for token in fragile.database.run_patiently(30, list_tokens) if token.user == "ann"]
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
