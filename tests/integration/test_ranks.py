"""The processes of a scaling study, killed or to be ended: the job says what happened, and none stays behind."""

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from tests.support import processes
from tests.support.fleet import DISPATCHER, WORKER, Fleet, fleet
from tests.support.ledger import Ledger
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.contract.states import Reason, Status
from warpfold.kernels.machine.cores import usable_cores

QUICK = {"lease_s": 10.0, "heartbeat_s": 0.1, "dispatch_interval_s": 0.1}

# Two processes that exchange messages for minutes, with nothing to do before.
LONG = {
    "kind": "scaling",
    "messages": [(1 << 24) + 8 * k for k in range(100)],
    "ranks": [2],
    "modes": ["process_per_rank"],
    "algorithms": ["ring"],
    "time_limit_s": 10.0,
}
SHORT = {"kind": "reduce", "source": {"type": "values", "values": [1, 2], "dtype": "float32"}}


@pytest.fixture(autouse=True)
def two_cores() -> None:
    if usable_cores() < 2:
        pytest.skip("one core runs one rank")


@contextmanager
def running(settings: Settings, log: Path) -> Iterator[tuple[Fleet, Ledger]]:
    database = BlockingDatabase(settings.database_url, application="test")
    try:
        with fleet(settings.model_copy(update=QUICK), log, worker=WORKER, dispatcher=DISPATCHER) as service:
            service.wait_until_logged("child ready")
            service.wait_until_logged('"event": "leading"')
            yield service, Ledger(database)
    finally:
        database.close()


def ranks_of(service: Fleet) -> list[psutil.Process]:
    """The two processes of the study that runs, once they are there and at work."""
    give_up = time.monotonic() + 120
    while True:
        with contextlib.suppress(psutil.Error):  # one that ends while it is looked at
            ranks = processes.spawned(service.child("worker").pid)
            if len(ranks) == 2 and all(rank.cpu_times().user > 0.1 for rank in ranks):
                return ranks
        assert time.monotonic() < give_up, "no ranks"
        time.sleep(0.02)


def until_status(ledger: Ledger, job_id: UUID, *statuses: Status) -> None:
    until(lambda: Status(ledger.column(job_id, "status")) in statuses, 120)


def test_a_killed_rank_fails_the_job_with_its_reason_and_the_slot_goes_on(settings: Settings, tmp_path: Path) -> None:
    with running(settings, tmp_path / "log") as (service, ledger):
        study = ledger.submit(spec=LONG)
        ranks = ranks_of(service)
        child = service.child("worker").pid
        ranks[1].kill()
        ledger.wait([study], 120)
        job = ledger.job(study)
        assert (job.status, job.reason) == (Status.FAILED, Reason.WORKER_LOST)
        assert job.error is not None
        assert "of 2 that ran the ranks died (signal 9)" in job.error
        processes.wait_for_ends(ranks)
        following = ledger.submit(spec=SHORT)
        ledger.wait([following], 120)
        assert ledger.result(following)["value"] == 3.0
        assert service.child("worker").pid == child


def test_a_cancelled_study_leaves_no_process(settings: Settings, tmp_path: Path) -> None:
    with running(settings, tmp_path / "log") as (service, ledger):
        study = ledger.submit(spec=LONG)
        ranks = ranks_of(service)
        ledger.cancel(study)
        ledger.wait([study], 120)
        assert ledger.job(study).status is Status.CANCELLED
        processes.wait_for_ends(ranks)


def test_a_killed_child_takes_its_ranks_with_it_and_the_study_is_tried_again(
    settings: Settings, tmp_path: Path
) -> None:
    with running(settings, tmp_path / "log") as (service, ledger):
        study = ledger.submit(spec=LONG)
        ranks = ranks_of(service)
        service.child("worker").kill()
        processes.wait_for_ends(ranks)
        until(lambda: ledger.job(study).attempt == 2)
        again = ranks_of(service)
        ledger.cancel(study)
        ledger.wait([study], 120)
        processes.wait_for_ends(again)


def test_a_killed_worker_takes_its_ranks_with_it(settings: Settings, tmp_path: Path) -> None:
    with running(settings, tmp_path / "log") as (service, ledger):
        study = ledger.submit(spec=LONG)
        ranks = ranks_of(service)
        service.kill("worker")
        processes.wait_for_ends(ranks)
        ledger.cancel(study)
        until_status(ledger, study, Status.CANCELLED)
