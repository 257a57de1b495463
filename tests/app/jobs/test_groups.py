"""Many attempts a statement: each keeps a lease, an event and an end of its own."""

import json
from collections.abc import Sequence
from uuid import UUID

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.exc import StatementError

from tests.support.ledger import Ledger
from tests.support.measurements import POINT
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import groups, leases
from warpfold.app.jobs.attempt import Answer, Failure, Lease, Success
from warpfold.app.jobs.groups import ClaimedGroup
from warpfold.app.tables.jobs import jobs
from warpfold.contract.states import Reason, Status

WORKER = "here:cpu"


@pytest.fixture
def small(ledger: Ledger) -> Sequence[UUID]:
    return [ledger.submit(small=True) for _ in range(5)]


def claim(database: BlockingDatabase, *ids: UUID) -> ClaimedGroup:
    return database.step(groups.claim, [(job_id, 1) for job_id in ids], WORKER, 60.0)


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
        groups.claim, [(cancelled, 1), (taken, 1), (superseded, 1), (free, 1), (lost, 2), (later, 1)], WORKER, 60.0
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
    renewals = database.step(groups.renew, group, 120.0)
    assert [renewals[job_id].held for job_id in small] == [True, True, False, True, True]
    assert [renewals[job_id].cancel_requested for job_id in small] == [False, True, False, False, False]
    after = [ledger.column(job_id, "lease_expires_at") for job_id in small]
    assert [new is not None and new > old for old, new in zip(before, after, strict=True)] == [
        renewals[job_id].held for job_id in small
    ]


def test_ends_are_stored_once_each_with_result_points_and_event(
    ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]
) -> None:
    group = claim(database, *small).leases
    ledger.lose(small[4])
    answered: list[tuple[Lease, Answer]] = [
        (lease, Success({"value": -0.0, "of": str(lease.job_id)}, (POINT,))) for lease in (*group[:3], group[4])
    ]
    answered.append((group[3], Failure(Reason.INVALID_INPUT, "the input is odd", replace=False)))
    for _ in range(2):  # the answer of the first commit may have been lost
        assert set(database.run(groups.end, answered)) == set(small[:4])
    assert statuses(ledger, small) == [*[Status.SUCCEEDED] * 3, Status.FAILED, Status.QUEUED]
    for job_id in small[:3]:
        assert json.loads(ledger.result_text(job_id)) == {"value": -0.0, "of": str(job_id)}
        assert ledger.points(job_id) == 1
        assert ledger.history(job_id) == ["submitted", "started", "succeeded"]
    assert (ledger.job(small[3]).reason, ledger.job(small[3]).error) == (Reason.INVALID_INPUT, "the input is odd")
    assert (ledger.points(small[4]), ledger.history(small[4])) == (0, ["submitted", "started", "requeued"])


def test_a_point_of_a_group_is_stored_as_that_of_one_alone(
    ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]
) -> None:
    group = claim(database, *small[:2]).leases
    database.run(groups.end, [(group[0], Success({}, (POINT,)))])
    database.run(leases.succeed, group[1], {}, (POINT,))
    first, second = (ledger.measured(job_id) for job_id in small[:2])
    assert first == second


def test_one_result_that_postgres_refuses_undoes_the_transaction(
    ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]
) -> None:
    good, bad = claim(database, *small[:2]).leases
    with pytest.raises(StatementError):
        database.run(groups.end, [(good, Success({})), (bad, Success({"value": float("nan")}))])
    assert statuses(ledger, small[:2]) == [Status.RUNNING, Status.RUNNING]


def test_what_has_not_begun_goes_back_without_blame(
    ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]
) -> None:
    group = claim(database, *small[:2]).leases
    ledger.cancel(small[1])
    database.run(groups.put_back, group, "stopped")
    assert statuses(ledger, small[:2]) == [Status.QUEUED, Status.CANCELLED]
    assert (ledger.job(small[0]).attempt, ledger.column(small[0], "losses")) == (2, 0)


def test_lease_expiry_takes_back_only_what_has_not_ended(
    ledger: Ledger, database: BlockingDatabase, small: Sequence[UUID]
) -> None:
    group = claim(database, *small).leases
    database.run(groups.end, [(lease, Success({})) for lease in group[:3]])
    taken = database.run(leases.take_back_silent, database.run(leases.running_attempts), 3)
    assert set(taken) == set(small[3:])
    assert statuses(ledger, small) == [*[Status.SUCCEEDED] * 3, *[Status.QUEUED] * 2]
