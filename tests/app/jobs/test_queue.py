"""Which of the workers that live may take a job, as Postgres decides it."""

from uuid import UUID

import pytest
from sqlalchemy import Connection, select, update

from tests.support.ledger import Ledger
from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Success
from warpfold.app.jobs.dispatch_state import Depth
from warpfold.app.jobs.queue import anything, suits
from warpfold.app.tables.jobs import jobs, workers
from warpfold.contract.needs import GANG_FIRST, GPU_FIRST
from warpfold.worker.dispatcher import choose

ALL = {"cpu", "cuda", "gang"}


@pytest.mark.parametrize(
    ("needed", "live", "taken_by"),
    [
        ("any", ALL, {"cpu", "cuda"}),
        ("cuda", ALL, {"cuda"}),
        ("gang", ALL, {"gang"}),
        (GANG_FIRST, ALL, {"gang"}),
        (GANG_FIRST, {"cpu", "cuda"}, {"cuda"}),
        (GANG_FIRST, {"cpu"}, {"cpu"}),
        (GPU_FIRST, ALL, {"cuda"}),
        (GPU_FIRST, {"cpu", "gang"}, {"cpu"}),
    ],
)
def test_the_best_slot_that_lives_takes_a_job_and_the_gang_no_other(
    ledger: Ledger, needed: str, live: set[str], taken_by: set[str]
) -> None:
    for slot in live:
        ledger.worker(slot)
    assert ledger.database.run(_suited, ledger.submit(needs=needed)) == taken_by


def test_a_slot_that_drains_is_not_waited_for(ledger: Ledger) -> None:
    names = {slot: ledger.worker(slot) for slot in ALL}
    ledger.database.run(_drain, names["gang"])
    assert ledger.database.run(_suited, ledger.submit(needs=GANG_FIRST)) == {"cuda"}


def test_a_service_is_idle_where_no_job_waits_or_runs(ledger: Ledger) -> None:
    worker = ledger.worker("cpu")
    assert not ledger.database.run(anything)
    job_id = ledger.submit(needs=GPU_FIRST)
    assert ledger.database.run(anything)
    [handed] = ledger.database.run(choose, Depth(2))
    assert ledger.database.run(anything)
    lease = ledger.database.run(leases.claim, job_id, handed.attempt, worker, 60.0)
    assert lease is not None
    assert ledger.database.run(anything)
    ledger.database.run(leases.succeed, [(lease, Success({}))])
    assert not ledger.database.run(anything)


def _drain(connection: Connection, worker: str) -> None:
    connection.execute(update(workers).where(workers.c.id == worker).values(draining=True))


def _suited(connection: Connection, job_id: UUID) -> set[str]:
    rows = select(workers.c.backend).join(jobs, jobs.c.id == job_id).where(suits(workers.c.backend))
    return set(connection.execute(rows).scalars())
