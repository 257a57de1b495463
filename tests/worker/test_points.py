"""A benchmark whose children die on the way, with real children and a real database."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Connection, select

from app.config import Settings
from app.db import BlockingDatabase
from app.jobs.states import Reason, Status
from app.results.models import measurements
from tests.worker.ledger import Ledger
from tests.worker.measuring_children import measurer
from worker.gpu_lock import GpuTurn
from worker.messages import Failure, Request
from worker.points import Points
from worker.slot import Died, Halt, Slot
from worker.stop import Stop
from worker.tasks import Place, run_job

WORKER = "here:cuda:0"


@pytest.fixture
def place(settings: Settings, database: BlockingDatabase, stop: Stop, tmp_path: Path) -> Iterator[Place]:
    slot = Slot("cuda:0", measurer, stop, grace_s=0.3)
    slot.ready()
    yield Place(WORKER, slot, GpuTurn(tmp_path, [0]), database, settings, stop)
    slot.close()


def measured(ledger: Ledger, place: Place, *strategies: str) -> UUID:
    job_id = ledger.submit(spec={"strategies": strategies})
    run_job(place, job_id, 1)
    return job_id


def rows(connection: Connection, job_id: UUID) -> list[tuple[str, str, str | None]]:
    table = measurements.c
    chosen = select(table.strategy, table.outcome, table.reason).where(table.job_id == job_id).order_by(table.id)
    return [(row.strategy, row.outcome, row.reason) for row in connection.execute(chosen)]


def test_a_point_that_kills_its_process_fails_alone(ledger: Ledger, place: Place) -> None:
    job_id = measured(ledger, place, "a", "kill", "b", "exit", "c")
    assert ledger.job(job_id).status is Status.SUCCEEDED
    assert ledger.database.run(rows, job_id) == [
        ("a", "measured", None),
        ("kill", "failed", "the process that measured it died (signal 9)"),
        ("b", "measured", None),
        ("exit", "failed", "the process that measured it died (exit code 3)"),
        ("c", "measured", None),
    ]
    assert ledger.job(job_id).attempt == 1


def test_after_a_cuda_error_a_new_child_measures_the_rest(ledger: Ledger, place: Place) -> None:
    before = place.slot.pid
    job_id = measured(ledger, place, "a", "cuda", "b")
    assert ledger.job(job_id).status is Status.SUCCEEDED
    assert ledger.database.run(rows, job_id) == [
        ("a", "measured", None),
        ("cuda", "failed", "bad"),
        ("b", "measured", None),
    ]
    assert place.slot.pid != before


def test_the_last_point_may_be_the_one(ledger: Ledger, place: Place) -> None:
    job_id = measured(ledger, place, "a", "kill")
    assert ledger.job(job_id).status is Status.SUCCEEDED
    assert len(ledger.database.run(rows, job_id)) == 2


def test_a_child_that_dies_without_getting_further_is_a_lost_worker(ledger: Ledger, place: Place) -> None:
    job_id = measured(ledger, place, "a", "always")
    job = ledger.job(job_id)
    assert (job.status, job.attempt) == (Status.QUEUED, 2)
    assert ledger.points(job_id) == 0


REQUEST = Request(UUID(int=0), 1, "{}", 0.0)


@pytest.mark.parametrize(
    "ending",
    [
        Halt.TIMEOUT,
        Halt.CANCELLED,
        Halt.STOPPING,
        Failure(Reason.INVALID_INPUT, "", replace=False),
        Failure(Reason.INTERNAL, "", replace=True),
        Failure(Reason.OUT_OF_MEMORY, "", replace=False),
    ],
)
def test_other_endings_stand(ending: Halt | Failure) -> None:
    assert Points().rest(REQUEST, ending) is None


def test_a_reduction_whose_child_died_is_not_run_on() -> None:
    assert Points().rest(REQUEST, Died(-9)) is None
    assert Points().rest(REQUEST, Failure(Reason.CUDA_ERROR, "", replace=True)) is None
