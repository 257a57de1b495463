"""An accuracy study whose child dies on the way, with real children and a real database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ledger import Ledger
from tests.support.workers.dying import DEADLY, dying
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.contract.kinds.accuracy import AccuracyResult
from warpfold.contract.states import Status
from warpfold.worker.endings import Place
from warpfold.worker.gpu_lock import GpuTurn
from warpfold.worker.nursery import Nursery
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop
from warpfold.worker.tasks import run_job

STUDY = {
    "kind": "accuracy",
    "methods": ["sequential", DEADLY, "tree", "exact"],
    "distributions": ["normal"],
    "sizes": [1000],
}


@pytest.fixture
def place(
    settings: Settings, database: BlockingDatabase, stop: Stop, nursery: Nursery, tmp_path: Path
) -> Iterator[Place]:
    slot = Slot("cpu", dying, stop, nursery, grace_s=0.3)
    slot.ready()
    yield Place("here:cpu", slot, GpuTurn(tmp_path, []), database, settings, stop)
    slot.close()


def test_a_method_that_kills_its_process_fails_alone_and_every_other_point_is_whole(
    ledger: Ledger, place: Place
) -> None:
    job_id = ledger.submit(spec=STUDY)
    run_job(place, job_id, 1)
    assert ledger.job(job_id).status is Status.SUCCEEDED
    points = AccuracyResult.model_validate(ledger.result(job_id)).points
    assert [(point.method, point.outcome) for point in points] == [
        ("sequential", "measured"),
        (DEADLY, "failed"),
        ("tree", "measured"),
        ("exact", "measured"),
    ]
    assert points[1].reason == "the process that measured it died (signal 9)"
    assert all(point.bound_verdict == "held" for point in points if point.outcome == "measured")
    assert ledger.points(job_id) == len(points)
