"""Something is killed in the middle of a preset. Each of its jobs ends once, and so does the preset."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from redis import Redis
from sqlalchemy import Connection

from benchmarks.hosts.gated_worker import Gates
from tests.support.fleet import DISPATCHER, fleet
from tests.support.gated_service import QUICK, away, running, until_running
from tests.support.ledger import Ledger, succeeded_events
from tests.support.servers import Servers, kill
from warpfold.app.config import Settings
from warpfold.app.jobs import accept, presets
from warpfold.app.jobs.presets import Child
from warpfold.app.jobs.store import Job
from warpfold.app.tables.jobs import NONE
from warpfold.contract.states import Status

JOBS = 10
HIT = 5  # the job that runs when the blow falls


def spec(index: int) -> dict[str, object]:
    """The sum of 0, 1, …"""
    source = {"type": "generate", "distribution": "arange", "n": length(index), "dtype": "float64"}
    return {"kind": "reduce", "op": "sum", "source": source}


def length(index: int) -> int:
    """Of a job's data, and so the name of its gate."""
    return 1_000_000 + index


def answer(index: int) -> float:
    """0 + 1 + … + (n−1), rounded once."""
    n = length(index)
    return float(n * (n - 1) // 2)


def submit(ledger: Ledger) -> UUID:
    """A preset of ten reductions, accepted in one transaction as by the api."""
    return ledger.database.run(_accept, ledger.owner("ada"))


def _accept(connection: Connection, owner: int) -> UUID:
    preset = uuid4()
    common: dict[str, Any] = {"owner": "ada", "owner_id": owner, "priority": 1, "timeout_s": 60.0}
    parent = Job.new(id=preset, kind="preset", needs=NONE, spec=json.dumps({"kind": "preset"}), **common)
    accept.accept(connection, parent)
    for index in range(JOBS):
        described = json.dumps(spec(index))
        child = Job.new(
            id=uuid4(), kind="reduce", needs="any", spec=described, parent_id=preset, name=str(index), **common
        )
        accept.accept(connection, child)
    return preset


def through(ledger: Ledger, gates: Gates, blow: Callable[[], object]) -> None:
    gates.close(length(HIT))
    preset = submit(ledger)
    until_running(ledger, children(ledger, preset)[HIT].id)
    blow()
    gates.open(length(HIT))
    ended_once(ledger, preset)


def children(ledger: Ledger, preset: UUID) -> tuple[Child, ...]:
    return ledger.database.run_patiently(30.0, presets.children, preset)


def ended_once(ledger: Ledger, preset: UUID) -> None:
    ledger.wait([preset], 120)
    family = children(ledger, preset)
    assert [child.status for child in family] == [Status.SUCCEEDED] * JOBS
    assert [ledger.result(child.id)["value"] for child in family] == [answer(index) for index in range(JOBS)]
    ids = [child.id for child in family]
    assert ledger.database.run(succeeded_events, ids) == dict.fromkeys(ids, 1)
    job = ledger.job(preset)
    assert (job.status, job.progress_done, job.progress_total) == (Status.SUCCEEDED, JOBS, JOBS)
    assert ledger.history(preset) == ["submitted", "started", "succeeded"]
    assert len(ledger.result(preset)["jobs"]) == JOBS


def test_kill_of_the_worker(settings: Settings, log: Path, gates: Gates) -> None:
    with running(settings, log, gates) as (service, ledger):
        through(ledger, gates, lambda: service.kill("worker"))
        assert service.deaths == {"worker": 1}


def test_kill_of_the_dispatcher_that_settles(settings: Settings, log: Path, gates: Gates) -> None:
    """Another one stands by, and has to find out how far the preset is."""
    with (
        running(settings, log, gates) as (service, ledger),
        fleet(settings.model_copy(update=QUICK), log, second=DISPATCHER),
    ):
        service.wait_until_logged("standing by")
        through(ledger, gates, lambda: service.kill("dispatcher"))
        assert service.deaths == {"dispatcher": 1}


def test_loss_of_redis_and_of_all_that_it_held(settings: Settings, log: Path, gates: Gates, redis_url: str) -> None:
    with running(settings, log, gates) as (service, ledger), Redis.from_url(redis_url) as redis:
        through(ledger, gates, redis.flushall)
        assert service.deaths == {}


def test_loss_of_postgres(fragile_settings: Settings, servers: Servers, log: Path, gates: Gates) -> None:
    with running(fragile_settings, log, gates) as (service, ledger):
        through(ledger, gates, lambda: away(servers.postgres, kill))
        assert service.deaths == {}


def test_a_preset_cancelled_in_its_middle_ends_while_the_dispatcher_is_killed(
    settings: Settings, log: Path, gates: Gates
) -> None:
    with running(settings, log, gates) as (service, ledger):
        gates.close(length(HIT))
        preset = submit(ledger)
        until_running(ledger, children(ledger, preset)[HIT].id)
        ledger.database.run(presets.cancel, preset)
        service.kill("dispatcher")
        ledger.wait([preset], 120)
        assert ledger.job(preset).status is Status.CANCELLED
        assert {child.status for child in children(ledger, preset)} == {Status.SUCCEEDED, Status.CANCELLED}
        assert ledger.history(preset)[-1] == "cancelled"
        assert ledger.history(preset).count("cancelled") == 1
