"""Something is killed in the middle of fifty jobs. All fifty end, once each, with the right value."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import httpx
from redis import Redis
from sqlalchemy import Connection, func, update
from standardwebhooks import Webhook

from benchmarks.hosts.gated_worker import Gates
from tests.support import receivers
from tests.support.fleet import DISPATCHER, fleet
from tests.support.gated_service import QUICK, away, running, until_running
from tests.support.ledger import Ledger, succeeded_events
from tests.support.servers import Servers, kill
from warpfold.app.auth.access_tokens import Role, create_token
from warpfold.app.config import Settings
from warpfold.app.tables.webhooks import webhooks as table
from warpfold.app.webhooks import repository as webhooks
from warpfold.app.webhooks.message import new_secret
from warpfold.contract.states import Status
from warpfold.worker.boot import describe
from warpfold.worker.embedded import EmbeddedServer

JOBS = 50
HIT = (20, 35)  # the jobs that run when a blow falls


def length(index: int) -> int:
    """Of a job's data, and so the name of its gate."""
    return 1_000_000 + index


def spec(index: int) -> dict[str, object]:
    source = {"type": "generate", "distribution": "arange", "n": length(index), "dtype": "float64"}
    return {"kind": "reduce", "op": "sum", "source": source}


def answer(index: int) -> float:
    """0 + 1 + … + (n−1), rounded once."""
    n = length(index)
    return float(n * (n - 1) // 2)


def submit_all(ledger: Ledger) -> list[UUID]:
    return [ledger.submit(spec=spec(index)) for index in range(JOBS)]


def all_ended_once(ledger: Ledger, job_ids: list[UUID]) -> None:
    ledger.wait(job_ids, 120)
    for index, job_id in enumerate(job_ids):
        job = ledger.job(job_id)
        assert job.status is Status.SUCCEEDED, (job.reason, job.error)
        assert ledger.result(job_id)["value"] == answer(index)
        assert ledger.points(job_id) == 1
    assert ledger.database.run(succeeded_events, job_ids) == dict.fromkeys(job_ids, 1)


def through(ledger: Ledger, gates: Gates, *blows: Callable[[], object]) -> list[UUID]:
    """Fifty jobs, with one or two blows in their middle."""
    hits = HIT[: len(blows)]
    for hit in hits:
        gates.close(length(hit))
    job_ids = submit_all(ledger)
    for hit, blow in zip(hits, blows, strict=True):
        until_running(ledger, job_ids[hit])
        blow()
        gates.open(length(hit))
    all_ended_once(ledger, job_ids)
    return job_ids


def attempts(ledger: Ledger, job_ids: list[UUID]) -> list[int]:
    return sorted(ledger.job(job_id).attempt for job_id in job_ids)


def test_kill_of_the_child(settings: Settings, log: Path, gates: Gates) -> None:
    with running(settings, log, gates) as (service, ledger):
        job_ids = through(ledger, gates, lambda: service.child("worker").kill())
        assert service.deaths == {}
        assert attempts(ledger, job_ids) == [1] * 49 + [2]


def test_kill_of_the_worker(settings: Settings, log: Path, gates: Gates) -> None:
    with running(settings, log, gates) as (service, ledger):
        job_ids = through(ledger, gates, lambda: service.kill("worker"))
        assert service.deaths == {"worker": 1}
        assert attempts(ledger, job_ids) == [1] * 49 + [2]


def test_kill_of_the_dispatcher(settings: Settings, log: Path, gates: Gates) -> None:
    """First another one stands by and takes over, then there is none and it has to start again."""
    with running(settings, log, gates) as (service, ledger):
        standby = fleet(settings.model_copy(update=QUICK), log, second=DISPATCHER)
        with standby as second:
            service.wait_until_logged("standing by")

            def take_over() -> None:
                service.kill("dispatcher")
                service.wait_until_logged('"event": "leading"', times=2)

            through(ledger, gates, take_over, lambda: second.kill("second"))
            assert (service.deaths, second.deaths) == ({"dispatcher": 1}, {"second": 1})


def test_kill_of_the_dispatcher_while_it_tells_a_receiver(settings: Settings, log: Path, gates: Gates) -> None:
    """The receiver hangs over the first message; the next dispatcher sends it again, with the same id."""
    secret = new_secret()
    calling = settings.model_copy(update={"webhook_allow_private": True, "webhook_timeout_s": 60.0})
    with (
        receivers.receiver(receivers.hang, receivers.answer(204)) as target,
        running(calling, log, gates) as (service, ledger),
    ):
        job_id = ledger.submit(spec=spec(0))
        assert ledger.database.run(webhooks.register, job_id, ledger.owner("ada"), target.url(), secret)
        target.wait(1, within_s=60)
        others = [ledger.submit(spec=spec(index)) for index in range(1, 5)]
        ledger.wait(others, 120)  # a receiver that hangs keeps nobody else waiting
        service.kill("dispatcher")
        ledger.database.run(_let_its_time_pass, job_id)
        first, second = target.wait(2, within_s=60)
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert first.body == second.body
        Webhook(secret).verify(second.body, second.headers)
        assert service.deaths == {"dispatcher": 1}
        service.wait_until_logged("webhook delivered")
        deliveries = ledger.database.run(webhooks.deliveries, job_id)
        assert deliveries is not None
        assert [(attempt.number, attempt.finished_at is None) for attempt in deliveries.attempts] == [
            (1, True),
            (2, False),
        ]


def _let_its_time_pass(connection: Connection, job_id: UUID) -> None:
    """As if the attempt under way had had all of its time, after which the next one is due."""
    connection.execute(update(table).where(table.c.job_id == job_id).values(due_at=func.now()))


def test_flushall(settings: Settings, log: Path, gates: Gates, redis_url: str) -> None:
    with running(settings, log, gates) as (service, ledger), Redis.from_url(redis_url) as redis:

        def flush() -> None:
            while not redis.llen(f"rq:queue:{describe('cpu').id}"):
                time.sleep(0.001)
            redis.flushall()

        through(ledger, gates, flush)
        assert service.deaths == {}
        assert "not in its queue" in log.read_text(), "something was lost"


def test_loss_of_redis(fragile_settings: Settings, servers: Servers, log: Path, gates: Gates) -> None:
    with running(fragile_settings, log, gates) as (service, ledger):
        through(ledger, gates, lambda: away(servers.redis, stop), lambda: away(servers.redis, kill))
        assert service.deaths == {}


def test_loss_of_postgres(fragile_settings: Settings, servers: Servers, log: Path, gates: Gates) -> None:
    with running(fragile_settings, log, gates) as (service, ledger):
        through(ledger, gates, lambda: away(servers.postgres, stop), lambda: away(servers.postgres, kill))
        assert service.deaths == {}


def stop(server: EmbeddedServer) -> None:
    server.stop()


def test_kill_of_the_api(settings: Settings, log: Path, gates: Gates) -> None:
    """Its clients repeat what got no answer, with the same idempotency key."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    api = ("warpfold.app", "--port", str(port))
    url = f"http://127.0.0.1:{port}"
    with (
        running(settings, log, gates) as (_, ledger),
        fleet(settings, log, api=api) as front,
        httpx.Client(base_url=url, timeout=30.0) as http,
    ):
        token = ledger.database.run(create_token, "ada", Role.USER, "test")
        headers = {"Authorization": f"Bearer {token}"}
        job_ids = []
        for index in range(JOBS):
            if index == JOBS // 2:
                # While a request is on its way.
                killer = threading.Timer(0.002, front.kill, ("api",))
                killer.start()
            job_ids.append(_persistently(http, headers | {"Idempotency-Key": f"key-{index}"}, spec(index)))
        killer.join()
        all_ended_once(ledger, job_ids)
        assert front.deaths == {"api": 1}
        assert len(set(job_ids)) == JOBS
        assert ledger.count() == JOBS, "no job was accepted twice"


def _persistently(http: httpx.Client, headers: dict[str, str], body: dict[str, object]) -> UUID:
    give_up = time.monotonic() + 120
    while True:
        with contextlib.suppress(httpx.TransportError):
            answer = http.post("/v1/jobs", json=body, headers=headers)
            assert answer.status_code in (200, 202), answer.text
            return UUID(answer.json()["id"])
        assert time.monotonic() < give_up
        time.sleep(0.02)
