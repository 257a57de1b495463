"""A benchmark whose children die on the way, with real children and a real database."""

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Connection, select

from tests.support.leases import lease_on
from tests.support.ledger import Ledger
from tests.support.measurements import replace
from tests.support.waiting import until
from tests.support.workers.measurer import POINT, measurer
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs.attempt import Failure
from warpfold.app.tables.measurements import measurements
from warpfold.contract.states import Reason, Status
from warpfold.worker.endings import Place
from warpfold.worker.gpu_lock import GpuTurn
from warpfold.worker.lease_exchange import Died, EndCause
from warpfold.worker.messages import Measured, PointBegun
from warpfold.worker.nursery import Nursery
from warpfold.worker.points import Points
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop
from warpfold.worker.tasks import run_job

WORKER = "here:cuda:0"


@pytest.fixture
def place(
    settings: Settings, database: BlockingDatabase, stop: Stop, nursery: Nursery, tmp_path: Path
) -> Iterator[Place]:
    slot = Slot("cuda:0", measurer, stop, nursery, grace_s=0.3)
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


def test_a_cancelled_benchmark_keeps_its_points(ledger: Ledger, place: Place) -> None:
    job_id = ledger.submit(spec={"strategies": ["a", "b", "forever"]})
    beside = threading.Thread(target=_cancel_in_the_middle, args=(ledger, job_id))
    beside.start()
    run_job(place, job_id, 1)
    beside.join()
    assert ledger.job(job_id).status is Status.CANCELLED
    assert [strategy for strategy, _, _ in ledger.database.run(rows, job_id)] == ["a", "b"]


def _cancel_in_the_middle(ledger: Ledger, job_id: UUID) -> None:
    until(lambda: ledger.job(job_id).progress_done >= 2)
    ledger.cancel(job_id)


def test_a_benchmark_out_of_time_keeps_its_points(ledger: Ledger, place: Place) -> None:
    job_id = ledger.submit(spec={"strategies": ["a", "b", "forever"]}, timeout_s=2)
    run_job(place, job_id, 1)
    job = ledger.job(job_id)
    assert (job.status, job.reason) == (Status.FAILED, Reason.TIMEOUT)
    assert [strategy for strategy, _, _ in ledger.database.run(rows, job_id)] == ["a", "b"]


def test_a_benchmark_that_fails_keeps_its_points(ledger: Ledger, place: Place) -> None:
    job_id = measured(ledger, place, "a", "bug", "b")
    job = ledger.job(job_id)
    assert (job.status, job.reason) == (Status.FAILED, Reason.INTERNAL)
    assert [strategy for strategy, _, _ in ledger.database.run(rows, job_id)] == ["a"]


LEASE = lease_on("{}", job_id=UUID(int=0))


@pytest.mark.parametrize(
    "ending",
    [
        EndCause.TIMEOUT,
        EndCause.CANCELLED,
        EndCause.STOPPING,
        Failure(Reason.INVALID_INPUT, "", replace=False),
        Failure(Reason.INTERNAL, "", replace=True),
        Failure(Reason.OUT_OF_MEMORY, "", replace=False),
    ],
)
def test_other_endings_stand(ending: EndCause | Failure) -> None:
    assert Points().rest(LEASE, ending) is None


def test_a_reduction_whose_child_died_is_not_run_on() -> None:
    assert Points().rest(LEASE, Died(-9)) is None
    assert Points().rest(LEASE, Failure(Reason.CUDA_ERROR, "", replace=True)) is None


def test_points_are_kept_in_order_and_the_one_begun_is_not_among_them() -> None:
    points = Points()
    for name in ("a", "b"):
        points.take(PointBegun(replace(POINT, strategy=name, outcome="failed")))
        points.take(Measured(replace(POINT, strategy=name)))
    points.take(PointBegun(replace(POINT, strategy="c", outcome="failed")))
    assert [(point.strategy, point.outcome) for point in points.done] == [("a", "measured"), ("b", "measured")]


@pytest.mark.parametrize(("code", "words"), [(-11, "signal 11"), (3, "exit code 3"), (None, "exit code None")])
def test_the_rest_of_a_benchmark_leaves_out_the_point_that_killed(code: int | None, words: str) -> None:
    points = Points()
    points.take(PointBegun(replace(POINT, outcome="failed")))
    rest = points.rest(LEASE, Died(code))
    assert rest is not None
    (lost,) = rest.done
    assert (lost.outcome, lost.reason) == ("failed", f"the process that measured it died ({words})")
    assert rest == dataclasses.replace(LEASE, done=points.done)


def test_a_child_that_dies_again_without_a_new_point_ends_the_attempt() -> None:
    points = Points()
    points.take(Measured(POINT))
    rest = points.rest(LEASE, Died(-9))
    assert rest is not None
    assert points.rest(rest, Died(-9)) is None
    assert points.done == (POINT,)


def test_after_a_cuda_error_the_point_that_met_it_is_done() -> None:
    points = Points()
    points.take(PointBegun(POINT))
    points.take(Measured(replace(POINT, outcome="failed")))
    rest = points.rest(LEASE, Failure(Reason.CUDA_ERROR, "", replace=True))
    assert rest is not None
    assert [point.outcome for point in rest.done] == ["failed"]
