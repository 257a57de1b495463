"""What a claim and an end leave to the disk, and what an attempt knows of the one before it."""

import psycopg
import pytest
from sqlalchemy import Connection, text

from tests.support.dispatching import claim
from tests.support.ledger import Ledger
from warpfold.app.db import FREED, QUEUE, conninfo
from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Lease
from warpfold.contract.states import Loss


def _waits_for_disk(connection: Connection) -> bool:
    return bool(connection.execute(text("show synchronous_commit")).scalar_one() == "on")


def test_a_claim_does_not_wait_for_the_disk_and_the_end_does(ledger: Ledger) -> None:
    job_id, worker = ledger.submit(), ledger.worker("cpu")

    def claimed(connection: Connection) -> tuple[Lease | None, bool]:
        return leases.claim(connection, job_id, 1, worker, 60.0), _waits_for_disk(connection)

    def succeeded(connection: Connection, lease: Lease) -> tuple[bool, bool]:
        return leases.succeed(connection, lease, {}, ()), _waits_for_disk(connection)

    lease, waits = ledger.database.run(claimed)
    assert lease is not None
    assert not waits
    assert ledger.database.run(succeeded, lease) == (True, True)


def test_an_end_tells_the_dispatcher_whether_any_job_waits(ledger: Ledger, database_url: str) -> None:
    worker = ledger.worker("cpu")
    held = [claim(ledger.database, ledger.submit(), worker) for _ in range(2)]
    with psycopg.connect(conninfo(database_url), autocommit=True) as listener:
        listener.execute(f"listen {QUEUE}")

        def notified() -> list[str]:
            return [notice.payload for notice in listener.notifies(timeout=30.0, stop_after=1)]

        assert ledger.database.run(leases.succeed, held[0], {}, ())
        assert notified() == [FREED]
        ledger.submit()
        assert notified() == [""]
        assert ledger.database.run(leases.succeed, held[1], {}, ())
        assert notified() == [""]


def test_a_lease_that_was_lost_with_its_claim_ends_nothing(ledger: Ledger) -> None:
    """As after a crash of Postgres, which may undo a claim of its last moments."""
    job_id, worker = ledger.submit(), ledger.worker("cpu")
    undone = ledger.database.run(leases.claim, job_id, 1, worker, 60.0)
    assert undone is not None
    ledger.set(job_id, status="queued", lease_token=None, lease_expires_at=None, started_at=None, worker=None)
    lease = ledger.database.run(leases.claim, job_id, 1, worker, 60.0)
    assert lease is not None
    assert not ledger.database.run(leases.succeed, undone, {"value": 1}, ())
    assert ledger.database.run(leases.succeed, lease, {"value": 2}, ())
    assert ledger.result(job_id) == {"value": 2}


@pytest.mark.parametrize("why", list(Loss))
def test_an_attempt_knows_whether_the_child_of_the_one_before_it_died(ledger: Ledger, why: Loss) -> None:
    worker = ledger.worker("cpu")
    first = claim(ledger.database, ledger.submit(), worker)
    ledger.database.run(leases.lost, first, 3, why)
    second = ledger.database.run(leases.claim, first.job_id, 2, worker, 60.0)
    assert second is not None
    assert (first.child_died, second.child_died) == (False, why is Loss.CHILD_DIED)
    assert ledger.database.run(leases.put_back, second, "the worker stops")
    third = ledger.database.run(leases.claim, first.job_id, 3, worker, 60.0)
    assert third is not None
    assert not third.child_died
