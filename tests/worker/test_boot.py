"""Whole worker processes."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from redis import Redis
from sqlalchemy import Connection, select

from tests.support import processes
from tests.support.ledger import Ledger
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs.queue import HandOver
from warpfold.app.jobs.workers import live_pid
from warpfold.app.tables.jobs import workers
from warpfold.contract.placement import RatesView
from warpfold.contract.states import Status
from warpfold.worker.boot import CompileAhead, describe
from warpfold.worker.queue import AttemptQueues

ACTOR = ("tests.support.workers.serve_actor",)
REAL = ("warpfold.worker", "--slot")

Start = Callable[..., processes.Process]


@pytest.fixture
def start(settings: Settings, log: Path) -> Iterator[Start]:
    """Start a worker of the tests' actor, by default in slot cpu, and wait until it is ready."""
    started: list[processes.Process] = []

    def start(
        slot: str = "cpu",
        *,
        module: tuple[str, ...] = ACTOR,
        ready: bool = True,
        afresh: bool = False,
        **changes: object,
    ) -> processes.Process:
        before = log.read_text().count("child ready") if log.exists() else 0
        begin = processes.start_afresh if afresh else processes.start
        process = begin(settings.model_copy(update=changes), log, *module, slot)
        started.append(process)
        if ready:
            until(lambda: log.read_text().count("child ready") > before or process.poll() is not None)
            assert process.poll() is None, log.read_text()
        return process

    yield start
    processes.end(started)


def hand(ledger: Ledger, redis: Redis, do: str) -> "Any":
    job_id = ledger.submit(do)
    AttemptQueues(redis).send([HandOver(job_id, 1, describe("cpu").id)])
    return job_id


def _row(connection: Connection) -> Any:
    return connection.execute(select(workers)).one_or_none()


def test_a_worker_says_who_it_is_and_when_it_leaves(start: Start, database: BlockingDatabase) -> None:
    process = start()
    until(lambda: (row := database.run(_row)) is not None and row.state == "idle")
    row = database.run(_row)
    assert (row.slot, row.backend, row.pid) == ("cpu", "cpu", process.pid)
    assert row.device == {"backend": "cpu", "name": "actor"}
    process.terminate()
    assert process.wait(60) == 0
    assert database.run(_row).state == "stopped"
    assert database.run(live_pid, row.id) is None


def test_a_worker_runs_what_its_queue_holds(start: Start, ledger: Ledger, redis: Redis) -> None:
    start()
    job_ids = [hand(ledger, redis, f"say {index}") for index in range(5)]
    ledger.wait(job_ids, 60)
    assert {ledger.job(job_id).status for job_id in job_ids} == {Status.SUCCEEDED}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_worker_ends_and_puts_its_job_back(
    start: Start, ledger: Ledger, redis: Redis, number: signal.Signals
) -> None:
    process = start()
    job_id = hand(ledger, redis, "sleep 60")
    until(lambda: ledger.job(job_id).status is Status.RUNNING)
    child = processes.child_of(process)
    process.send_signal(number)
    assert process.wait(50) == 0
    processes.wait_for_ends([child])
    job = ledger.job(job_id)
    assert (job.status, job.attempt, ledger.column(job_id, "losses")) == (Status.QUEUED, 2, 0)


def test_an_idle_worker_stops_when_it_is_asked_to(start: Start) -> None:
    process = start()
    process.terminate()
    assert process.wait(60) == 0


def test_a_second_worker_for_a_slot_refuses(start: Start, log: Path) -> None:
    start()
    assert start(ready=False).wait(60) == 1
    assert "another worker already serves slot cpu" in log.read_text()


def test_so_does_one_with_another_data_directory(
    start: Start, log: Path, tmp_path: Path, database: BlockingDatabase
) -> None:
    start(afresh=True)  # a worker is known by its command line, which a fork does not have
    until(lambda: database.run(_row) is not None)
    assert start(ready=False, data_dir=tmp_path / "other").wait(60) == 1
    assert "with another data directory" in log.read_text()


def test_a_restarted_worker_takes_back_what_its_killed_forerunner_ran(
    start: Start, ledger: Ledger, redis: Redis
) -> None:
    process = start()
    job_id = hand(ledger, redis, "sleep 60")
    until(lambda: ledger.job(job_id).status is Status.RUNNING)
    process.kill()
    process.wait()
    start()
    job = ledger.job(job_id)
    assert (job.status, job.attempt, ledger.column(job_id, "losses")) == (Status.QUEUED, 2, 1)


def test_a_worker_without_its_device_says_so_and_ends(start: Start, log: Path) -> None:
    assert start("cuda:0", ready=False).wait(60) == 1
    assert "no GPU is visible to this process" in log.read_text()


def test_a_worker_replaces_a_child_that_is_killed_while_idle(
    start: Start, ledger: Ledger, redis: Redis, log: Path
) -> None:
    processes.child_of(start()).kill()
    until(lambda: log.read_text().count("child ready") == 2)
    job_id = hand(ledger, redis, "say alive")
    ledger.wait([job_id], 60)
    assert ledger.job(job_id).status is Status.SUCCEEDED


def test_the_spare_child_of_a_worker_takes_over(start: Start, ledger: Ledger, redis: Redis, log: Path) -> None:
    process = start(spare_child=True)
    until(lambda: "spare child stands by" in log.read_text())
    both = processes.spawned(process.pid)
    assert len(both) == 2
    crash, following = hand(ledger, redis, "signal 9"), hand(ledger, redis, "say hello")
    ledger.wait([following], 60)
    assert ledger.job(crash).status is Status.QUEUED  # it was lost once
    assert json.loads(str(ledger.job(following).result))["pid"] in {each.pid for each in both}
    process.terminate()
    assert process.wait(60) == 0
    processes.wait_for_ends(both)


def test_the_parent_of_a_slot_stays_small_and_loads_no_numpy(start: Start, ledger: Ledger, redis: Redis) -> None:
    process = start(module=REAL, afresh=True)
    source = {"type": "values", "values": [0.1] * 20_000, "dtype": "float64"}
    specs = [{"kind": "reduce", "op": "sum", "source": source, "tags": {"n": str(index)}} for index in range(20)]
    job_ids = [ledger.submit(spec=spec) for spec in specs]
    AttemptQueues(redis).send([HandOver(job_id, 1, describe("cpu").id) for job_id in job_ids])
    ledger.wait(job_ids, 120)
    assert {ledger.job(job_id).status for job_id in job_ids} == {Status.SUCCEEDED}
    parent = psutil.Process(process.pid)
    assert parent.memory_info().rss < 120e6
    assert not [mapped.path for mapped in parent.memory_maps() if "numpy" in mapped.path or "cupy" in mapped.path]


def test_compiling_ahead_has_the_lowest_priority_stands_still_while_a_job_runs_and_ends_with_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # with nothing in it there is much to do
    ahead = CompileAhead(wanted=True)
    assert ahead.pid is None
    ahead.start()
    assert ahead.pid is not None
    process = psutil.Process(ahead.pid)
    until(lambda: process.nice() == 19)
    session = Path(f"/proc/{ahead.pid}/autogroup")
    if session.exists():  # the system shares the processor among sessions
        until(lambda: session.read_text().endswith(" nice 19\n"))
        assert session.read_text() != Path("/proc/self/autogroup").read_text()
    with ahead.paused():
        until(lambda: process.status() == psutil.STATUS_STOPPED)
    until(lambda: process.status() != psutil.STATUS_STOPPED)
    ahead.start()
    assert ahead.pid == process.pid  # one a worker
    ahead.close()
    assert not psutil.pid_exists(process.pid)


def test_where_compiling_ahead_is_not_wanted_no_process_does_it() -> None:
    ahead = CompileAhead(wanted=False)
    ahead.start()
    with ahead.paused():
        assert ahead.pid is None
    ahead.close()


def test_an_idle_worker_measures_its_slot_once_on_this_machine(
    start: Start, ledger: Ledger, log: Path, settings: Settings
) -> None:
    def rates(connection: Connection) -> object:
        return connection.execute(select(workers.c.rates)).scalar_one_or_none()

    process = start(module=REAL, measure_rates=True)
    assert ledger.database.run(rates) is None, "no job waits for it"
    until(lambda: ledger.database.run(rates) is not None, 120)
    first = RatesView.stored(ledger.database.run(rates))
    assert first is not None
    process.terminate()
    assert process.wait(60) == 0
    start(module=REAL, measure_rates=True)
    until(lambda: ledger.database.run(live_pid, describe("cpu").id) is not None)
    assert RatesView.stored(ledger.database.run(rates)) == first
    assert log.read_text().count("rates measured") == 1
