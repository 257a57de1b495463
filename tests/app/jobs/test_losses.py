"""Attempts that were lost, and what the next attempt knows of them."""

import pytest

from tests.support.dispatching import claim
from tests.support.ledger import Ledger
from warpfold.app.jobs import leases, losses
from warpfold.app.jobs.attempt import Success
from warpfold.contract.states import Loss, Status


def test_lease_expiry_takes_back_only_what_has_not_ended(ledger: Ledger) -> None:
    worker = ledger.worker("cpu")
    ended, lost = (claim(ledger.database, ledger.submit(small=True), worker) for _ in range(2))
    ledger.database.run(leases.succeed, [(ended, Success({}))])
    taken = ledger.database.run(losses.take_back_silent, ledger.database.run(losses.running_attempts), 3)
    assert taken == [lost.job_id]
    assert ledger.job(ended.job_id).status is Status.SUCCEEDED
    assert ledger.job(lost.job_id).status is Status.QUEUED


@pytest.mark.parametrize("why", list(Loss))
def test_an_attempt_knows_whether_the_child_of_the_one_before_it_died(ledger: Ledger, why: Loss) -> None:
    worker = ledger.worker("cpu")
    first = claim(ledger.database, ledger.submit(), worker)
    ledger.database.run(losses.lost, first, 3, why)
    second = ledger.database.run(leases.claim, first.job_id, 2, worker, 60.0)
    assert second is not None
    assert (first.child_died, second.child_died) == (False, why is Loss.CHILD_DIED)
    ledger.database.run(leases.put_back, [(second, ())], "the worker stops")
    third = ledger.database.run(leases.claim, first.job_id, 3, worker, 60.0)
    assert third is not None
    assert not third.child_died
