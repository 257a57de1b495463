"""One attempt from claim to end, with a real child and a real database."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DataError

from tests.support.ledger import Ledger
from tests.support.waiting import Meanwhile, until
from tests.support.workers.actor import actor
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import events, leases, losses
from warpfold.app.jobs.attempt import Lease
from warpfold.contract.states import Reason, Status
from warpfold.worker.endings import Place
from warpfold.worker.gpu_lock import GpuTurn
from warpfold.worker.nursery import Nursery
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop
from warpfold.worker.tasks import run_job

WORKER = "here:cuda:0"


@pytest.fixture
def place(
    settings: Settings, database: BlockingDatabase, stop: Stop, nursery: Nursery, tmp_path: Path
) -> Iterator[Place]:
    quick = settings.model_copy(update={"heartbeat_s": 0.05})
    slot = Slot("cuda:0", actor(), stop, nursery, grace_s=0.3)
    slot.ready()
    yield Place(WORKER, slot, GpuTurn(tmp_path, [0]), database, quick, stop)
    slot.close()


def until_running(ledger: Ledger, job_id: UUID) -> None:
    until(lambda: ledger.job(job_id).status is Status.RUNNING)


def test_a_job_is_claimed_run_and_stored(place: Place, ledger: Ledger) -> None:
    job_id = ledger.submit("say hello")
    run_job(place, job_id, 1)
    job = ledger.job(job_id)
    assert (job.status, job.worker, job.attempt) == (Status.SUCCEEDED, WORKER, 1)
    assert json.loads(ledger.result_text(job_id)) == {"pid": place.slot.pid, "said": "hello"}
    assert ledger.points(job_id) == 1
    assert ledger.history(job_id) == ["submitted", "started", "succeeded"]


def test_a_message_that_comes_twice_runs_once(place: Place, ledger: Ledger) -> None:
    job_id = ledger.submit()
    run_job(place, job_id, 1)
    run_job(place, job_id, 1)
    assert ledger.history(job_id) == ["submitted", "started", "succeeded"]


def test_a_message_of_an_old_attempt_is_dropped(place: Place, ledger: Ledger) -> None:
    job_id = ledger.submit()
    run_job(place, job_id, 2)
    assert ledger.job(job_id).status is Status.QUEUED


def test_a_cancelled_job_is_not_started(place: Place, ledger: Ledger) -> None:
    job_id = ledger.submit()
    ledger.cancel(job_id)
    run_job(place, job_id, 1)
    assert ledger.history(job_id) == ["submitted", "cancelled"]


def test_a_failure_is_stored_with_reason_and_sentence(place: Place, ledger: Ledger) -> None:
    job_id = ledger.submit("raise input")
    run_job(place, job_id, 1)
    job = ledger.job(job_id)
    assert (job.status, job.reason, job.error) == (Status.FAILED, Reason.INVALID_INPUT, "the input is odd")


def test_a_job_that_runs_too_long_fails_with_timeout(place: Place, ledger: Ledger) -> None:
    job_id = ledger.submit("sleep 60", timeout_s=0.2)
    run_job(place, job_id, 1)
    job = ledger.job(job_id)
    assert (job.status, job.reason) == (Status.FAILED, Reason.TIMEOUT)
    assert job.error == "It ran longer than its time-out of 0.2 s."


@pytest.mark.parametrize("small", [False, True], ids=["alone", "in a group"])
def test_the_loop_turns_again_and_again_while_a_job_runs(
    small: bool, place: Place, ledger: Ledger, meanwhile: Meanwhile
) -> None:
    turns: list[None] = []
    job_id = ledger.submit("sleep 60", small=small)

    def cancel() -> None:
        until_running(ledger, job_id)
        seen = len(turns)
        until(lambda: len(turns) > seen + 3)
        ledger.cancel(job_id)

    meanwhile(cancel)
    run_job(replace(place, turned=lambda: turns.append(None)), job_id, 1)
    assert ledger.job(job_id).status is Status.CANCELLED


def test_a_running_job_is_cancelled_within_a_heartbeat(place: Place, ledger: Ledger, meanwhile: Meanwhile) -> None:
    job_id = ledger.submit("sleep 60")

    def cancel() -> None:
        until_running(ledger, job_id)
        ledger.cancel(job_id)

    meanwhile(cancel)
    started = time.monotonic()
    run_job(place, job_id, 1)
    assert time.monotonic() - started < 50
    assert ledger.history(job_id) == ["submitted", "started", "cancel_requested", "cancelled"]


def test_progress_and_lease_are_renewed_while_a_job_runs(place: Place, ledger: Ledger, meanwhile: Meanwhile) -> None:
    job_id = ledger.submit("count 600000")
    seen: list[tuple[int, int, str]] = []
    expiries: set[object] = set()

    def look() -> None:
        until_running(ledger, job_id)
        while len(set(seen)) < 3 or len(expiries) < 3:
            job = ledger.job(job_id)
            assert job.status is Status.RUNNING
            if job.progress_total:
                seen.append((job.progress_done, job.progress_total, job.progress_unit))
            expiries.add(ledger.column(job_id, "lease_expires_at"))
            time.sleep(0.01)
        ledger.cancel(job_id)

    meanwhile(look)
    run_job(place, job_id, 1)
    assert seen == sorted(seen)
    assert {progress[1:] for progress in seen} == {(600_000, "steps")}


def test_a_worker_that_is_stopped_puts_its_job_back_without_blame(
    place: Place, ledger: Ledger, stop: Stop, meanwhile: Meanwhile
) -> None:
    job_id = ledger.submit("sleep 60")

    def end() -> None:
        until_running(ledger, job_id)
        stop.request()

    meanwhile(end)
    run_job(place, job_id, 1)
    job = ledger.job(job_id)
    assert (job.status, job.attempt, ledger.column(job_id, "losses")) == (Status.QUEUED, 2, 0)


def test_a_job_whose_cancel_was_asked_for_is_not_put_back(
    place: Place, ledger: Ledger, database: BlockingDatabase
) -> None:
    job_id = ledger.submit()
    lease = database.run(leases.claim, job_id, 1, WORKER, 60.0)
    assert lease is not None
    ledger.cancel(job_id)
    database.run(leases.put_back, [(lease, ())], "stopped")
    assert ledger.job(job_id).status is Status.CANCELLED


def test_a_job_whose_child_dies_is_tried_again_and_fails_the_third_time(place: Place, ledger: Ledger) -> None:
    job_id = ledger.submit(f"signal {signal.SIGKILL}")
    for attempt in (1, 2, 3):
        assert ledger.job(job_id).status is Status.QUEUED
        place.slot.ready()
        run_job(place, job_id, attempt)
    job = ledger.job(job_id)
    assert (job.status, job.reason) == (Status.FAILED, Reason.WORKER_LOST)


def test_a_file_cut_short_while_it_is_read_is_the_owners_to_mend(place: Place, ledger: Ledger) -> None:
    job_id = ledger.submit(f"signal {signal.SIGBUS}")
    run_job(place, job_id, 1)
    job = ledger.job(job_id)
    assert (job.status, job.reason) == (Status.FAILED, Reason.INVALID_INPUT)


def test_a_job_whose_child_hangs_is_lost_and_goes_back_to_the_queue(
    place: Place, ledger: Ledger, database: BlockingDatabase
) -> None:
    job_id = ledger.submit("stop")
    place.slot._silent_s = 0.5
    run_job(place, job_id, 1)
    assert (ledger.job(job_id).attempt, ledger.column(job_id, "losses")) == (2, 1)
    requeued = database.run(events.events_after, job_id, 0)[-1]
    assert (requeued.type.value, requeued.data) == ("requeued", {"detail": "its process fell silent"})


def test_work_on_a_lost_lease_is_ended_and_leaves_no_trace(
    place: Place, ledger: Ledger, database: BlockingDatabase, meanwhile: Meanwhile
) -> None:
    job_id = ledger.submit("sleep 60")

    def lose() -> None:
        until_running(ledger, job_id)
        # The worker may renew its lease in between.
        while not database.run(losses.take_back_silent, database.run(losses.running_attempts), 3):
            pass

    meanwhile(lose)
    run_job(place, job_id, 1)
    assert ledger.job(job_id).attempt == 2
    assert ledger.history(job_id) == ["submitted", "started", "requeued"]
    assert place.slot.pid is None


def test_a_result_that_postgres_refuses_fails_the_job_with_an_incident(place: Place, ledger: Ledger) -> None:
    job_id = ledger.submit("say nan")
    run_job(place, job_id, 1)
    job = ledger.job(job_id)
    assert (job.status, job.reason) == (Status.FAILED, Reason.INTERNAL)
    assert job.error is not None
    assert "incident" in job.error


def test_a_job_waits_for_the_gpu_with_its_lease_alive_and_may_be_cancelled_there(
    place: Place, ledger: Ledger, tmp_path: Path, meanwhile: Meanwhile
) -> None:
    job_id = ledger.submit("say hello")
    expiries: set[object] = set()

    def cancel() -> None:
        until_running(ledger, job_id)
        while len(expiries) < 3:
            assert ledger.job(job_id).status is Status.RUNNING
            expiries.add(ledger.column(job_id, "lease_expires_at"))
            time.sleep(0.01)
        ledger.cancel(job_id)

    meanwhile(cancel)
    with GpuTurn(tmp_path, [0, 1]).hold(lambda: False):
        run_job(place, job_id, 1)
    assert ledger.job(job_id).status is Status.CANCELLED
    assert place.slot.pid is not None, "the child was not disturbed"


def test_two_attempts_that_race_for_a_job_run_it_once(place: Place, ledger: Ledger, database: BlockingDatabase) -> None:
    job_id = ledger.submit()
    won: list[object] = []
    threads = [
        threading.Thread(
            target=lambda: won.append(database.run(leases.claim, job_id, 1, f"worker {os.getpid()}", 60.0))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([lease for lease in won if lease is not None]) == 1


def test_progress_that_postgres_refuses_costs_neither_the_lease_nor_the_worker(
    place: Place, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, refused = leases.note_progress, list[int]()

    def noted(connection: Connection, lease: Lease, done: int, total: int, unit: str) -> None:
        refused.append(done)
        note(connection, lease, 1 << 64, 1 << 66, unit)

    monkeypatch.setattr(leases, "note_progress", noted)
    job_id = ledger.submit("count 300")
    run_job(place, job_id, 1)
    assert ledger.job(job_id).status is Status.SUCCEEDED
    assert refused


def test_a_statement_that_postgres_refuses_fails_the_job_and_not_the_worker(
    place: Place, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "renew", _refused)
    job_id = ledger.submit("sleep 30")
    run_job(place, job_id, 1)
    job = ledger.job(job_id)
    assert (job.status, job.reason) == (Status.FAILED, Reason.INTERNAL)
    assert "incident" in str(job.error)


def _refused(*arguments: object) -> None:
    raise DataError("update jobs …", {}, ValueError("integer out of range"))
