"""Which of the workers that live may take a job, as Postgres decides it."""

from uuid import UUID

import pytest
from sqlalchemy import Connection, select, update

from tests.support.ledger import Ledger
from warpfold.app.jobs.queue import suits
from warpfold.app.tables.jobs import jobs, workers
from warpfold.contract.needs import GANG_FIRST, GPU_FIRST

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


def _drain(connection: Connection, worker: str) -> None:
    connection.execute(update(workers).where(workers.c.id == worker).values(draining=True))


def _suited(connection: Connection, job_id: UUID) -> set[str]:
    rows = select(workers.c.backend).join(jobs, jobs.c.id == job_id).where(suits(workers.c.backend))
    return set(connection.execute(rows).scalars())
