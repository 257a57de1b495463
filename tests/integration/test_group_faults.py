"""Something is killed while a slot has claimed a group of small jobs. All end, once each, with the right value."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from redis import Redis

from benchmarks.hosts.gated_worker import Gates
from tests.support.fleet import Fleet
from tests.support.gated_service import away, running, until_running
from tests.support.ledger import Ledger, points_of, succeeded_events
from tests.support.servers import Servers, kill
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.contract.states import Status
from warpfold.worker.boot import describe
from warpfold.worker.queue import rq_id

JOBS = 50
HELD = 30
"""How many of them the slot holds at a time."""
HIT = 20
"""The child is in this one, in the middle of a group: those before it have ended, some after it are claimed."""


class Sweep:
    """Small jobs with one closed gate among them."""

    def __init__(self, ledger: Ledger, gates: Gates, first: int) -> None:
        self._ledger = ledger
        self._lengths = [*range(first, first + JOBS)]
        self.gate = first + HIT
        gates.close(self.gate)
        worker = describe("cpu").id
        ledger.drain(worker)  # so that they are handed over together
        self.ids = [ledger.submit(spec=self._spec(n), small=True, timeout_s=600.0) for n in self._lengths]
        ledger.resume(worker)

    def _spec(self, n: int) -> dict[str, object]:
        source = {"type": "generate", "distribution": "arange", "n": n, "dtype": "float64"}
        return {"kind": "reduce", "op": "sum", "source": source}

    def one_behind(self) -> UUID:
        """One more job, which is handed over and stays in the slot's queue while the gate is closed: it is not small,
        so no group claims it, and its owner's first, so it need not wait until the slot has room for all small ones."""
        self._lengths.append(self._lengths[-1] + 1)
        self.ids.append(self._ledger.submit(spec=self._spec(self._lengths[-1]), owner="bob", timeout_s=600.0))
        return self.ids[-1]

    def until_in_the_middle(self) -> None:
        """Of the group that the child is in the middle of, some jobs have ended and some have not begun."""
        until_running(self._ledger, self.ids[HIT])
        until(lambda: self._ledger.column(self.ids[HIT - 1], "status") == Status.SUCCEEDED)
        until(lambda: self._ledger.column(self.ids[HIT + 1], "status") == Status.RUNNING)

    def all_ended_once(self) -> None:
        self._ledger.wait(self.ids, 120)
        assert self.column("status") == [Status.SUCCEEDED] * len(self.ids), self.column("error")
        values = [result["value"] for result in self.column("result")]
        assert values == [float(n * (n - 1) // 2) for n in self._lengths]
        assert self._ledger.database.run(points_of, self.ids) == dict.fromkeys(self.ids, 1)
        assert self._ledger.database.run(succeeded_events, self.ids) == dict.fromkeys(self.ids, 1)

    def column(self, name: str) -> list[Any]:
        return self._ledger.columns(self.ids, name)


def kill_child(service: Fleet, redis: Redis, sweep: Sweep) -> None:
    service.child("worker").kill()


def kill_worker(service: Fleet, redis: Redis, sweep: Sweep) -> None:
    service.kill("worker")


def kill_dispatcher(service: Fleet, redis: Redis, sweep: Sweep) -> None:
    service.kill("dispatcher")


def flush(service: Fleet, redis: Redis, sweep: Sweep) -> None:
    """What was on its way is sent again, and no more of it than the slot may hold."""
    message = rq_id(sweep.one_behind(), 1).encode()

    def sent() -> list[bytes | str]:
        return redis.lrange(f"rq:queue:{describe('cpu').id}", 0, -1)

    until(lambda: message in sent())
    redis.flushall()
    until(lambda: message in sent())
    assert len(sent()) <= HELD + 1


@pytest.mark.timeout(1200)  # four drills, in each of which a loaded machine may need minutes
def test_groups_outlast_kills_of_every_process_and_a_flush(settings: Settings, log: Path, redis_url: str) -> None:
    gates = Gates(log.parent / "gates")
    held = settings.model_copy(update={"prefetch_small": HELD})
    with running(held, log, gates) as (service, ledger), Redis.from_url(redis_url) as redis:
        for first, blow in enumerate((kill_child, kill_worker, kill_dispatcher, flush), start=1):
            sweep = Sweep(ledger, gates, 1000 * first)
            sweep.until_in_the_middle()
            blow(service, redis, sweep)
            gates.open(sweep.gate)
            sweep.all_ended_once()
            attempts, losses = sweep.column("attempt"), sweep.column("losses")
            match blow.__name__:
                case "kill_child":
                    assert losses == [*[0] * HIT, 1, *[0] * (JOBS - HIT - 1)], "only the job that it was in"
                case "kill_worker":
                    assert attempts[:HIT] == [1] * HIT, "what had ended stays so"
                    assert attempts[HIT] == 2
                    assert set(losses) == {0, 1}
                case _:
                    assert attempts == [1] * len(sweep.ids), "nobody else's loss costs an attempt"
        assert service.deaths == {"worker": 1, "dispatcher": 1}


def test_a_group_outlasts_a_kill_of_postgres(fragile_settings: Settings, servers: Servers, log: Path) -> None:
    """Some jobs of the group have ended, one is in the child, some are claimed, and some wait."""
    gates = Gates(log.parent / "gates")
    held = fragile_settings.model_copy(update={"prefetch_small": HELD})
    with running(held, log, gates) as (service, ledger):
        sweep = Sweep(ledger, gates, 1000)
        sweep.until_in_the_middle()
        away(servers.postgres, kill)
        gates.open(sweep.gate)
        sweep.all_ended_once()
        assert sweep.column("attempt")[:HIT] == [1] * HIT, "what had ended stays so"
        assert service.deaths == {}
