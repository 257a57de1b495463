"""A child that is stopped in the middle of a job costs its slot a stated time, and its job nothing but that."""

from pathlib import Path

import pytest

from tests.drills.figures import Figures
from tests.integration.fleet import DISPATCHER, fleet
from tests.integration.gated import Gates
from tests.worker.ledger import Ledger
from warpfold.app.config import Settings
from warpfold.app.jobs.states import Status

LEASE_S = 3.0
N = 1000
SPEC = {
    "kind": "reduce",
    "op": "sum",
    "source": {"type": "generate", "distribution": "arange", "n": N, "dtype": "float64"},
}


@pytest.mark.parametrize("cancelled", [False, True], ids=["left alone", "cancelled"])
def test_a_job_whose_child_is_stopped(
    settings: Settings, log: Path, ledger: Ledger, figures: Figures, cancelled: bool
) -> None:
    gates = Gates(log.parent / "gates")
    gates.close(N)
    quick = settings.model_copy(update={"lease_s": LEASE_S, "heartbeat_s": 0.1, "dispatch_interval_s": 0.1})
    worker = ("tests.integration.gated", str(gates.folder))
    with fleet(quick, log, worker=worker, dispatcher=DISPATCHER) as service:
        service.wait_until_logged("child ready")
        job_id = ledger.submit(spec=SPEC, timeout_s=600.0)
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
