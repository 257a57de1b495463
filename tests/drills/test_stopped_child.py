"""A child that is stopped in the middle of a job costs its slot a stated time, and its job nothing but that."""

from pathlib import Path

import pytest

from tests.support.figures import Figures
from tests.support.gated_service import LEASE_S, N, gated_service
from tests.support.ledger import Ledger
from warpfold.app.config import Settings
from warpfold.contract.states import Status


@pytest.mark.parametrize("cancelled", [False, True], ids=["left alone", "cancelled"])
def test_a_job_whose_child_is_stopped(
    settings: Settings, log: Path, ledger: Ledger, figures: Figures, cancelled: bool
) -> None:
    with gated_service(settings, log) as (service, gates):
        job_id = gates.submit(ledger, N)
        ledger.until(job_id, "status", Status.RUNNING)
        child = service.child("worker")
        child.suspend()
        gates.open(N)
        if cancelled:
            with figures.timed("stopped child: from the cancel to the end"):
                ledger.cancel(job_id)
                ledger.until(job_id, "status", Status.CANCELLED)
        else:
            with figures.timed(f"stopped child, lease of {LEASE_S:g} s: until its job is queued again"):
                ledger.until(job_id, "attempt", 2)
            ledger.wait([job_id], 60)
            assert ledger.job(job_id).status is Status.SUCCEEDED
            assert (ledger.result(job_id)["value"], ledger.column(job_id, "losses")) == (N * (N - 1) / 2, 1)
            assert ledger.history(job_id) == ["submitted", "started", "requeued", "started", "succeeded"]
        assert service.deaths == {}, "the worker itself is well"
        assert service.child("worker").pid != child.pid
