"""Jobs whose workers are silent or lost, and jobs that no worker can take."""

from datetime import timedelta

import pytest

from tests.support.clock import HandClock
from tests.support.dispatching import claim, look_for
from tests.support.ledger import Ledger
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases, losses
from warpfold.app.jobs.attempt import Success
from warpfold.app.tables.jobs import jobs
from warpfold.contract.states import Reason, Status
from warpfold.worker.dispatcher import Dispatcher


def test_a_silent_worker_loses_its_job(
    ledger: Ledger, dispatcher: Dispatcher, database: BlockingDatabase, clock: HandClock
) -> None:
    cpu, job_id = ledger.worker("cpu"), ledger.submit()
    lease = claim(database, job_id, cpu)
    look_for(dispatcher, clock, 14.9)
    assert ledger.job(job_id).status is Status.RUNNING
    look_for(dispatcher, clock, 0.2)
    job = ledger.job(job_id)
    assert (job.status, job.attempt) == (Status.QUEUED, 2)
    assert not database.run(leases.succeed, [(lease, Success({}))]), "the old lease is worth nothing"
    assert ledger.history(job_id) == ["submitted", "started", "requeued"]


def test_a_worker_that_renews_its_lease_keeps_its_job(
    ledger: Ledger, dispatcher: Dispatcher, database: BlockingDatabase, clock: HandClock
) -> None:
    lease = claim(database, ledger.submit(), ledger.worker("cpu"))
    for _ in range(5):
        look_for(dispatcher, clock, 14)
        assert lease.job_id in database.run(leases.renew, [lease], 15.0)


@pytest.mark.parametrize("seconds", [86_400, -86_400])
def test_a_step_of_the_servers_clock_takes_no_job_from_a_worker_that_lives(
    ledger: Ledger, dispatcher: Dispatcher, database: BlockingDatabase, clock: HandClock, seconds: float
) -> None:
    job_id = ledger.submit()
    lease = claim(database, job_id, ledger.worker("cpu"))
    look_for(dispatcher, clock, 10)
    ledger.set(job_id, lease_expires_at=jobs.c.lease_expires_at + timedelta(seconds=seconds))
    look_for(dispatcher, clock, 10)
    assert lease.job_id in database.run(leases.renew, [lease], 15.0)
    look_for(dispatcher, clock, 16)
    assert ledger.job(job_id).attempt == 2, "and one that does not live loses its job no later"


def test_after_a_stall_workers_get_the_time_to_renew_their_leases(
    ledger: Ledger, dispatcher: Dispatcher, database: BlockingDatabase, clock: HandClock
) -> None:
    """Of Postgres, or of the dispatcher: it cannot tell, and need not."""
    job_id = ledger.submit()
    lease = claim(database, job_id, ledger.worker("cpu"))
    look_for(dispatcher, clock, 5)
    clock.pass_over(3600)
    look_for(dispatcher, clock, 6)
    assert lease.job_id in database.run(leases.renew, [lease], 15.0)


def test_a_worker_that_stays_silent_after_a_stall_loses_its_job_which_does_not_count(
    ledger: Ledger, dispatcher: Dispatcher, database: BlockingDatabase, clock: HandClock
) -> None:
    cpu, job_id = ledger.worker("cpu"), ledger.submit()
    for attempt in (1, 2, 3, 4):
        assert database.run(leases.claim, job_id, attempt, cpu, 60.0) is not None
        look_for(dispatcher, clock, 1)
        clock.pass_over(3600)
        look_for(dispatcher, clock, 20)
        assert (ledger.job(job_id).attempt, ledger.column(job_id, "losses")) == (attempt + 1, 0)


def test_what_a_dispatcher_wants_to_take_back_after_it_was_stopped_is_left_to_who_renewed_it(
    ledger: Ledger, database: BlockingDatabase
) -> None:
    job_id = ledger.submit()
    lease = claim(database, job_id, ledger.worker("cpu"))
    silent = database.run(losses.running_attempts)
    assert lease.job_id in database.run(leases.renew, [lease], 60.0)
    assert database.run(losses.take_back_silent, silent, 3) == []
    assert ledger.job(job_id).status is Status.RUNNING


def test_a_job_that_loses_its_worker_three_times_fails(ledger: Ledger, database: BlockingDatabase) -> None:
    cpu, job_id = ledger.worker("cpu"), ledger.submit()
    for attempt in (1, 2, 3):
        assert database.run(leases.claim, job_id, attempt, cpu, 60.0) is not None
        ledger.lose(job_id)
    job = ledger.job(job_id)
    assert (job.status, job.reason) == (Status.FAILED, Reason.WORKER_LOST)
    assert job.error is not None
    assert "3 times" in job.error


def test_a_cancelled_job_of_a_lost_worker_is_not_run_again(ledger: Ledger, database: BlockingDatabase) -> None:
    cpu, job_id = ledger.worker("cpu"), ledger.submit()
    claim(database, job_id, cpu)
    ledger.cancel(job_id)
    ledger.lose(job_id)
    assert ledger.job(job_id).status is Status.CANCELLED


def test_a_job_that_no_worker_can_take_fails_in_the_end(
    ledger: Ledger, dispatcher: Dispatcher, clock: HandClock
) -> None:
    """A step of the server's clock ages jobs, and makes them fail no earlier."""
    ledger.worker("cpu")
    on_gpu, on_any = ledger.submit(needs="cuda"), ledger.submit()
    ledger.age(on_gpu, 1000)
    ledger.age(on_any, 1000)
    look_for(dispatcher, clock, 59)
    assert ledger.job(on_gpu).status is Status.QUEUED, "workers get time to start after the dispatcher"
    look_for(dispatcher, clock, 2)
    job = ledger.job(on_gpu)
    assert (job.status, job.reason, job.error) == (
        Status.FAILED,
        Reason.UNAVAILABLE,
        "No worker with a GPU serves this queue.",
    )
    assert ledger.job(on_any).status is Status.QUEUED


def test_a_worker_that_only_restarts_fails_no_job(ledger: Ledger, dispatcher: Dispatcher, clock: HandClock) -> None:
    job_id = ledger.submit(needs="cuda")
    ledger.age(job_id, 100)
    look_for(dispatcher, clock, 50)
    ledger.worker("cuda:0")
    look_for(dispatcher, clock, 20)
    ledger.worker("cuda:0", state="stopped", lease_s=0.0)
    look_for(dispatcher, clock, 50)
    assert ledger.job(job_id).status is Status.QUEUED
