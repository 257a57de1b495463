"""Two who change a job at the same time: what one asked for is not forgotten by the other."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest
from sqlalchemy import event

from tests.support.ledger import Ledger
from tests.support.servers import Servers, kill
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases, losses, presets, queue
from warpfold.app.jobs.attempt import Lease
from warpfold.app.tables.jobs import NONE
from warpfold.contract.states import Status

WORKER = "here:cpu"


@pytest.fixture
def other(ledger: Ledger) -> Iterator[BlockingDatabase]:
    """The database of somebody else."""
    database = BlockingDatabase(str(ledger.database._engine.url), application="other")
    yield database
    database.close()


@contextmanager
def in_between(database: BlockingDatabase, what: Callable[[], object], after: int = 1) -> Iterator[None]:
    """Do `what` after the first statements inside: it is done before the next one, unless it has to wait."""
    beside = threading.Thread(target=what)
    executed = 0

    def begin(*_: object) -> None:
        nonlocal executed
        executed += 1
        if executed == after:
            beside.start()
            beside.join(0.5)

    event.listen(database._engine, "after_cursor_execute", begin)
    try:
        yield
    finally:
        event.remove(database._engine, "after_cursor_execute", begin)
        beside.join()


def claim(ledger: Ledger, job_id: UUID) -> Lease:
    lease = ledger.database.run(leases.claim, job_id, 1, WORKER, 60.0)
    assert lease is not None
    return lease


def test_a_cancel_that_meets_a_job_on_its_way_back_to_the_queue_ends_it(
    ledger: Ledger, other: BlockingDatabase
) -> None:
    job_id = ledger.submit()
    lease = claim(ledger, job_id)
    with in_between(ledger.database, lambda: other.run(leases.put_back, [(lease, ())], "stopped")):
        ledger.cancel(job_id)
    assert ledger.job(job_id).status is Status.CANCELLED


def test_a_cancel_that_comes_while_a_lost_job_is_taken_back_ends_it(ledger: Ledger, other: BlockingDatabase) -> None:
    job_id = ledger.submit()
    claim(ledger, job_id)
    silent = ledger.database.run(losses.running_attempts)
    with in_between(other, lambda: ledger.cancel(job_id)):
        other.run(losses.take_back_silent, silent, 3)
    assert ledger.job(job_id).status is Status.CANCELLED
    assert ledger.history(job_id) == ["submitted", "started", "requeued", "cancelled"]


def test_a_preset_that_is_cancelled_takes_along_a_job_on_its_way_back_to_the_queue(
    ledger: Ledger, other: BlockingDatabase
) -> None:
    preset, child = ledger.submit(needs=NONE), ledger.submit()
    ledger.set(child, parent_id=preset, name="one")
    lease = claim(ledger, child)
    with in_between(ledger.database, lambda: other.run(leases.put_back, [(lease, ())], "stopped"), after=2):
        ledger.database.run(presets.cancel, preset)
    assert ledger.job(child).status is Status.CANCELLED


def test_an_end_that_the_dispatcher_wrote_outlasts_a_crash_of_postgres(servers: Servers) -> None:
    database = BlockingDatabase(servers.database_url, application="test")
    hasty = BlockingDatabase(servers.database_url, application="dispatcher", durable=False)
    ledger = Ledger(database)
    lost, unservable = ledger.submit(), ledger.submit(needs="cuda")
    claim(ledger, lost)
    ledger.age(unservable, 1000)
    assert hasty.run(losses.take_back_silent, hasty.run(losses.running_attempts), 1) == [lost]
    assert hasty.run(queue.fail_unservable, ["cuda"], 60.0) == [unservable]
    kill(servers.postgres)
    servers.postgres.start()
    assert {ledger.column(job_id, "status") for job_id in (lost, unservable)} == {"failed"}
    for connection in (database, hasty):
        connection.close()
