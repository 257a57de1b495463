"""Real processes that are stopped, and a socket that takes requests and answers none."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from tests.support import processes, warm
from tests.support.clock import HandClock
from tests.support.ledger import Ledger
from tests.support.servers import Servers as OwnServers
from tests.support.servers import kill
from tests.support.waiting import until
from tests.support.workers import supervised
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.metrics.monitoring import somebody_leads
from warpfold.app.tables.jobs import workers
from warpfold.worker.nursery import Nursery
from warpfold.worker.serve.bootstrap import Servers
from warpfold.worker.serve.hangs import HangDetector, Reports
from warpfold.worker.serve.process import Process, stop_all
from warpfold.worker.serve.supervisor import keep_alive
from warpfold.worker.stop import Stop

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def process(tmp_path: Path, nursery: Nursery) -> Iterator[Process]:
    process = Process("dispatcher", (supervised.__name__, "stay"), dict(os.environ), tmp_path / "log", nursery)
    process.start()
    yield process
    process.signal(signal.SIGCONT)
    stop_all([process], 60.0)


@pytest.fixture
def reports(settings: Settings) -> Iterator[Reports]:
    with Reports(settings.database_url) as reports:
        yield reports


def test_a_process_that_is_stopped_is_replaced(process: Process) -> None:
    before = process.pid
    stop = Stop()
    hangs = HangDetector(NOWHERE, after_s=0.5)
    keeper = threading.Thread(target=keep_alive, args=([process], Servers("", "", None, None), stop, hangs, 1 << 20))
    process.signal(signal.SIGSTOP)
    keeper.start()
    try:
        until(lambda: process.pid != before)
        # Looked at before the thread ends: Linux ends a process with the thread that started it.
        assert (process.restarts, process.exit_code()) == (1, None)
    finally:
        stop.request()
        keeper.join()
        stop.close()


def test_it_is_given_its_time_and_one_that_wakes_up_in_time_is_left_alone(process: Process) -> None:
    clock = HandClock()
    hangs = HangDetector(NOWHERE, after_s=20.0, clock=clock)
    processes: list[Process] = []

    def look() -> None:
        processes.extend(hangs.find([process]))

    clock.pass_slowly(60, look)
    process.signal(signal.SIGSTOP)
    until_state(process, "T")
    clock.pass_slowly(15, look)
    clock.pass_over(3600)  # the supervisor is stopped, too
    look()
    assert processes == []
    process.signal(signal.SIGCONT)
    until_state(process, "S")
    clock.pass_slowly(60, look)
    assert processes == []
    process.signal(signal.SIGSTOP)
    until_state(process, "T")
    clock.pass_slowly(30, look)
    assert processes[0] is process


def until_state(process: Process, state: str) -> None:
    """Until the kernel shows the process so."""
    until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == state)


@pytest.mark.parametrize("hangs_by", ["stopped", "its loop does not turn"])
def test_a_dispatcher_that_does_nothing_is_replaced_by_one_that_leads(
    hangs_by: str, reports: Reports, settings: Settings, database: BlockingDatabase, tmp_path: Path
) -> None:
    note, clock, stop = tmp_path / "stands still", HandClock(), Stop()
    if hangs_by == "stopped":
        note.touch()  # it would work
    quick = settings.model_copy(update={"lead_s": 1.0, "dispatch_interval_s": 0.1})
    command = ("tests.support.workers.wedged_dispatcher", str(note))
    dispatcher = Process("dispatcher", command, processes.environment(quick), tmp_path / "log", warm.nursery())
    hangs = HangDetector(NOWHERE, reports, clock=clock)
    watch = ([dispatcher], Servers("", "", None, None), stop, hangs, 1 << 20)
    keeper = threading.Thread(target=keep_alive, args=watch)
    dispatcher.start()
    try:
        until(lambda: database.step(somebody_leads) or note.exists(), 120)
        if hangs_by == "stopped":
            dispatcher.signal(signal.SIGSTOP)
        until(note.exists)
        before = dispatcher.pid
        keeper.start()

        def replaced() -> bool:
            clock.pass_over(1.0)  # no time passes for the next one, however long it takes to start
            return dispatcher.restarts > 0

        until(replaced, every_s=0.1)
        until(lambda: database.step(somebody_leads), 120)
        assert dispatcher.pid != before
        assert dispatcher.restarts == 1
    finally:
        stop.request()
        if keeper.is_alive():
            keeper.join()
        stop.close()
        dispatcher.signal(signal.SIGCONT)
        stop_all([dispatcher], 60.0)


def test_nobody_is_called_silent_while_postgres_does_not_answer(
    process: Process, fragile_settings: Settings, servers: OwnServers
) -> None:
    clock = HandClock()
    processes: list[Process] = []
    with Reports(fragile_settings.database_url) as reports:
        hangs = HangDetector(NOWHERE, reports, clock=clock)

        def look() -> bool:
            clock.pass_over(2.5)
            processes.extend(hangs.find([process]))
            time.sleep(0.02)  # a look at Postgres goes on beside it
            return processes != []

        kill(servers.postgres)
        assert not any(look() for _ in range(100))
        servers.postgres.start()
        until(look)
    assert processes[0] is process, "nobody leads, though there is a dispatcher"


def test_a_worker_lives_while_its_row_says_so(process: Process, reports: Reports, ledger: Ledger) -> None:
    process.name = "worker-cpu"
    assert process.pid is not None
    until(lambda: reports.silent([process]) == {"worker-cpu": process.pid})
    worker = ledger.worker("cpu", host=socket.gethostname()[:64])
    ledger.database.run(_set_pid, worker, process.pid)
    reports.silent([process])
    until(lambda: reports.silent([process]) == {}, every_s=0.2)
    for _ in range(5):
        time.sleep(0.1)
        assert reports.silent([process]) == {}


def _set_pid(connection: Connection, worker: str, pid: int) -> None:
    connection.execute(update(workers).where(workers.c.id == worker).values(pid=pid))


def test_an_api_that_takes_requests_and_answers_none_hangs(process: Process) -> None:
    process.name = "api"
    clock = HandClock()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        hangs = HangDetector(f"http://127.0.0.1:{deaf.getsockname()[1]}", after_s=2.0, clock=clock)
        assert hangs.find([process]) == []
        clock.pass_over(4)
        assert hangs.find([process]) == [process]


def test_an_api_that_answers_or_is_only_starting_does_not(process: Process) -> None:
    process.name = "api"
    clock = HandClock()
    hangs = HangDetector(NOWHERE, after_s=2.0, clock=clock)
    for _ in range(3):
        clock.pass_over(4)
        assert hangs.find([process]) == []
