"""Slots of two GPUs, of both together and of the CPU, with work for all of them at once. The GPUs are pretended: the
slots, locks and queues are real, what computes is the CPU."""

from pathlib import Path
from uuid import UUID

from tests.support.fleet import DISPATCHER, WORKER, fleet
from tests.support.ledger import Ledger
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.contract.states import Status

QUICK = {"lease_s": 10.0, "heartbeat_s": 0.1, "dispatch_interval_s": 0.1}
PRETEND = "tests.support.workers.two_gpus"

SINGLE = {
    "kind": "reduce",
    "op": "sum",
    "source": {"type": "generate", "distribution": "arange", "n": 3_000_000, "dtype": "float64"},
}
STUDY = {
    "kind": "scaling",
    "sizes": [10_000],
    "ranks": [1],
    "methods": ["exact"],
    "samples": 3,
}


def test_all_get_their_turns_and_end(settings: Settings, tmp_path: Path) -> None:
    commands = {slot.replace(":", ""): (PRETEND, slot) for slot in ("cuda:0", "cuda:1", "gang")}
    with fleet(
        settings.model_copy(update=QUICK), tmp_path / "log", cpu=WORKER, dispatcher=DISPATCHER, **commands
    ) as service:
        service.wait_until_logged("child ready", times=4, within_s=120)
        service.wait_until_logged('"event": "leading"')
        database = BlockingDatabase(settings.database_url, application="test")
        ledger = Ledger(database)
        singles = [ledger.submit(spec=SINGLE, needs="cuda") for _ in range(6)]
        gangs = [ledger.submit(spec=STUDY, needs="gang_first"), ledger.submit(spec=STUDY, needs="gang")]
        singles += [ledger.submit(spec=SINGLE, needs="cuda") for _ in range(6)]
        anywhere = [ledger.submit(spec=SINGLE) for _ in range(4)]
        jobs = [*singles, *gangs, *anywhere]
        ledger.wait(jobs, 200)
        assert {ledger.job(job).status for job in jobs} == {Status.SUCCEEDED}, [ledger.job(job).error for job in jobs]
        assert {slot(ledger, job) for job in gangs} == {"gang"}
        assert {slot(ledger, job) for job in singles} == {"cuda:0", "cuda:1"}
        assert "gang" not in {slot(ledger, job) for job in anywhere}
        database.close()


def slot(ledger: Ledger, job: UUID) -> str:
    """Where a job ran."""
    return str(ledger.column(job, "worker")).partition(":")[2]
