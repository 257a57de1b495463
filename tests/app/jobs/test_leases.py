"""Leases, alone and many a statement: each attempt keeps a lease, an event and an end of its own."""

import json
from collections.abc import Sequence
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import StatementError

from tests.support.dispatching import claim as claim_one
from tests.support.ledger import Ledger, points_of
from tests.support.measurements import POINT
from warpfold.app.db import FREED, QUEUE, BlockingDatabase, conninfo
from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.app.jobs.leases import ClaimedGroup
from warpfold.app.tables.jobs import jobs
from warpfold.contract.states import Reason, Status

WORKER = "here:cpu"


@pytest.fixture
def small(ledger: Ledger) -> Sequence[UUID]:
    return [ledger.submit(small=True) for _ in range(5)]


def claim(database: BlockingDatabase, *ids: UUID) -> ClaimedGroup:
    return database.step(leases.claim_behind, [(job_id, 1) for job_id in ids], WORKER, 60.0)


def statuses(ledger: Ledger, ids: Sequence[UUID]) -> list[Status]:
    return [ledger.job(job_id).status for job_id in ids]


def test_a_claim_starts_each_job_as_one_alone_is_started(
    ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]
) -> None:
    alone = ledger.submit(small=True)
    assert database.step(leases.claim, alone, 1, WORKER, 60.0) is not None
    claimed = claim(database, *reversed(small))
    assert [lease.job_id for lease in claimed.leases] == [*reversed(small)]
    assert len({lease.token for lease in claimed.leases}) == len(small)
    assert not claimed.waiting
    kept = ("status", "slot", "worker", "attempt", "version")
    for job_id in small:
        assert [ledger.column(job_id, name) for name in kept] == [ledger.column(alone, name) for name in kept]
        assert ledger.events(job_id) == ledger.events(alone)


def test_a_claim_leaves_what_runs_alone_waiting_and_forgets_what_is_not_to_be_had(
    ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]
) -> None:
    later, (cancelled, taken, superseded, lost, free) = ledger.submit(small=True), small
    ledger.cancel(cancelled)
    assert claim(database, taken).leases
    for job_id in (superseded, lost):
        assert database.step(leases.claim, job_id, 1, WORKER, 60.0) is not None
    ledger.lose(lost)
    claimed = database.step(
        leases.claim_behind,
        [(cancelled, 1), (taken, 1), (superseded, 1), (free, 1), (lost, 2), (later, 1)],
        WORKER,
        60.0,
    )
    assert [lease.job_id for lease in claimed.leases] == [free]
    assert set(claimed.waiting) == {lost, later}, "a job that a worker was lost with runs alone, and has its turn"


def test_a_job_that_somebody_holds_locked_is_passed_by(database: BlockingDatabase, small: Sequence[UUID]) -> None:
    def lock_and_claim(connection: Connection) -> ClaimedGroup:
        connection.execute(select(jobs.c.id).where(jobs.c.id == small[0]).with_for_update())
        return claim(database, *small)

    claimed = database.run(lock_and_claim)
    assert ([lease.job_id for lease in claimed.leases], [*claimed.waiting]) == (list(small[1:]), [small[0]])


def test_a_drained_worker_claims_nothing(ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]) -> None:
    ledger.worker("cpu")
    ledger.drain(WORKER)
    assert not claim(database, *small).leases


def test_a_renewal_tells_each_job_s_worker_of_its_own_job(
    ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]
) -> None:
    group = claim(database, *small).leases
    before = [ledger.column(job_id, "lease_expires_at") for job_id in small]
    ledger.cancel(small[1])
    ledger.lose(small[2])
    renewed = database.step(leases.renew, group, 120.0)
    assert [renewed.get(job_id) for job_id in small] == [False, True, None, False, False]
    after = [ledger.column(job_id, "lease_expires_at") for job_id in small]
    assert [new is not None and new > old for old, new in zip(before, after, strict=True)] == [
        job_id in renewed for job_id in small
    ]


def test_ends_are_stored_once_each_with_result_points_and_event(
    ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]
) -> None:
    group = claim(database, *small).leases
    ledger.lose(small[4])
    answered = [
        (lease, Success({"value": -0.0, "of": str(lease.job_id)}, (POINT,))) for lease in (*group[:3], group[4])
    ]
    for _ in range(2):  # the answer of the first commit may have been lost
        assert set(database.run(leases.succeed, answered)) == set(small[:3])
        assert database.run(leases.fail, group[3], Reason.INVALID_INPUT, "the input is odd", (POINT,))
        assert not database.run(leases.fail, group[4], Reason.INVALID_INPUT, "the input is odd", (POINT,))
    assert statuses(ledger, small) == [*[Status.SUCCEEDED] * 3, Status.FAILED, Status.QUEUED]
    for job_id in small[:3]:
        assert json.loads(ledger.result_text(job_id)) == {"value": -0.0, "of": str(job_id)}
        assert ledger.history(job_id) == ["submitted", "started", "succeeded"]
    assert (ledger.job(small[3]).reason, ledger.job(small[3]).error) == (Reason.INVALID_INPUT, "the input is odd")
    assert ledger.history(small[4]) == ["submitted", "started", "requeued"]
    assert [ledger.points(job_id) for job_id in small] == [1, 1, 1, 1, 0]


def test_one_result_that_postgres_refuses_undoes_the_transaction(
    ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]
) -> None:
    good, bad = claim(database, *small[:2]).leases
    with pytest.raises(StatementError):
        database.run(leases.succeed, [(good, Success({})), (bad, Success({"value": float("nan")}))])
    assert statuses(ledger, small[:2]) == [Status.RUNNING, Status.RUNNING]


def test_what_has_not_begun_goes_back_without_blame(
    ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]
) -> None:
    group = claim(database, *small[:2]).leases
    ledger.cancel(small[1])
    database.run(leases.put_back, [(lease, ()) for lease in group], "stopped")
    assert statuses(ledger, small[:2]) == [Status.QUEUED, Status.CANCELLED]
    assert (ledger.job(small[0]).attempt, ledger.column(small[0], "losses")) == (2, 0)


def _waits_for_disk(connection: Connection) -> bool:
    return bool(connection.execute(text("show synchronous_commit")).scalar_one() == "on")


def test_a_claim_does_not_wait_for_the_disk_and_the_end_does(ledger: Ledger) -> None:
    job_id, worker = ledger.submit(), ledger.worker("cpu")

    def claimed(connection: Connection) -> tuple[Lease | None, bool]:
        return leases.claim(connection, job_id, 1, worker, 60.0), _waits_for_disk(connection)

    def succeeded(connection: Connection, lease: Lease) -> tuple[bool, bool]:
        return bool(leases.succeed(connection, [(lease, Success({}))])), _waits_for_disk(connection)

    lease, waits = ledger.database.run(claimed)
    assert lease is not None
    assert not waits
    assert ledger.database.run(succeeded, lease) == (True, True)


def test_an_end_tells_the_dispatcher_whether_any_job_waits(ledger: Ledger, database_url: str) -> None:
    worker = ledger.worker("cpu")
    held = [claim_one(ledger.database, ledger.submit(), worker) for _ in range(2)]
    with psycopg.connect(conninfo(database_url), autocommit=True) as listener:
        listener.execute(f"listen {QUEUE}")

        def notified() -> list[str]:
            return [notice.payload for notice in listener.notifies(timeout=30.0, stop_after=1)]

        assert ledger.database.run(leases.succeed, [(held[0], Success({}))])
        assert notified() == [FREED]
        ledger.submit()
        assert notified() == [""]
        assert ledger.database.run(leases.succeed, [(held[1], Success({}))])
        assert notified() == [""]


def test_a_lease_that_was_lost_with_its_claim_ends_nothing(ledger: Ledger) -> None:
    """As after a crash of Postgres, which may undo a claim of its last moments."""
    job_id, worker = ledger.submit(), ledger.worker("cpu")
    undone = ledger.database.run(leases.claim, job_id, 1, worker, 60.0)
    assert undone is not None
    ledger.set(job_id, status="queued", lease_token=None, lease_expires_at=None, started_at=None, worker=None)
    lease = ledger.database.run(leases.claim, job_id, 1, worker, 60.0)
    assert lease is not None
    assert not ledger.database.run(leases.succeed, [(undone, Success({"value": 1}, (POINT,)))])
    both = [(undone, Success({"value": 1}, (POINT,))), (lease, Success({"value": 2}, (POINT,)))]
    assert set(ledger.database.run(leases.succeed, both)) == {job_id}, "a group may have the job by both leases"
    assert ledger.result(job_id) == {"value": 2}
    assert ledger.database.run(points_of, [job_id]) == {job_id: 1}
