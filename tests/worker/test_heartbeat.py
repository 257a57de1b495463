"""The row of a worker, renewed by a real thread in a real database."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, select

from tests.support.clock import HandClock
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs.workers import WorkerInfo, live_pid
from warpfold.app.tables.jobs import workers
from warpfold.worker.heartbeat import Heartbeat

INFO = WorkerInfo("here:cpu", "cpu", "cpu", "here", 4711, "0", None)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def heartbeat(database: BlockingDatabase, settings: Settings, clock: HandClock) -> Iterator[Heartbeat]:
    quick = settings.model_copy(update={"heartbeat_s": 0.05, "lease_s": 0.5})
    heartbeat = Heartbeat(database, quick, INFO, clock=clock)
    heartbeat.start()
    yield heartbeat
    heartbeat.stop()


def test_a_worker_whose_loop_stands_still_is_lost_until_the_loop_turns_again(
    heartbeat: Heartbeat, database: BlockingDatabase, clock: HandClock
) -> None:
    def is_alive() -> bool:
        return database.run(live_pid, INFO.id) == INFO.pid

    until(is_alive)
    clock.pass_over(29)
    assert heartbeat.turns() is False, "it does not give up the wait for a child"
    clock.pass_over(29)
    until(is_alive)
    clock.pass_over(2)
    until(lambda: not is_alive())
    heartbeat.turned()
    until(is_alive)


def test_a_worker_that_stops_says_so_even_if_its_loop_stood_still(
    heartbeat: Heartbeat, database: BlockingDatabase, clock: HandClock
) -> None:
    until(lambda: database.run(live_pid, INFO.id) == INFO.pid)
    clock.pass_over(60)
    heartbeat.stop()
    assert database.run(_state) == "stopped"


def _state(connection: Connection) -> str:
    return str(connection.execute(select(workers.c.state).where(workers.c.id == INFO.id)).scalar_one())
