"""How attempts end whose results are stored, with a real child, a real database and a real folder."""

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from tests.support.exchange import ending_of
from tests.support.ledger import Ledger
from tests.support.workers.storing import storing
from warpfold.app.artefacts import repository
from warpfold.app.artefacts.store import ArtefactName, ArtefactStore
from warpfold.app.config import Settings
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases, losses
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.states import Loss, Status
from warpfold.worker.endings import Place, store
from warpfold.worker.gpu_lock import GpuTurn
from warpfold.worker.nursery import Nursery
from warpfold.worker.slot import Slot
from warpfold.worker.stop import Stop
from warpfold.worker.tasks import run_job

WORKER = "here:cpu"
QUOTA = 5_000


@pytest.fixture
def place(
    settings: Settings, database: BlockingDatabase, stop: Stop, nursery: Nursery, tmp_path: Path
) -> Iterator[Place]:
    small = settings.model_copy(update={"dataset_quota_bytes": QUOTA, "keep_free_bytes": 0})
    slot = Slot("cpu", storing(small.folders()), stop, nursery, grace_s=0.3)
    slot.ready()
    yield Place(WORKER, slot, GpuTurn(tmp_path, []), database, small, stop)
    slot.close()


def names(place: Place) -> list[ArtefactName]:
    return sorted(ArtefactStore(place.settings.artefacts_dir()).names())


def test_files_and_result_are_stored_together_within_the_quota_or_not_at_all(place: Place, ledger: Ledger) -> None:
    first, second, third = (ledger.submit("store 300") for _ in range(3))
    run_job(place, first, 1)
    assert ledger.job(first).status is Status.SUCCEEDED
    stored = ArtefactStore(place.settings.artefacts_dir()).path(ArtefactName(first, 1))
    assert np.load(stored / "values.npy").tolist() == list(range(300))
    assert json.loads(ledger.result_text(first))["artefact"]["rows"] == 300
    run_job(place, second, 1)
    failed = ledger.job(second)
    assert (failed.status, failed.reason, failed.result) == (Status.FAILED, "invalid_input", None)
    assert failed.error is not None
    assert failed.error.startswith("axis: The result has 2,528 bytes, with which")
    assert names(place) == [ArtefactName(first, 1)]
    place.database.run(repository.release, first)
    run_job(place, third, 1)
    assert ledger.job(third).status is Status.SUCCEEDED


@pytest.mark.parametrize("word", ["killed-writing", "killed-written"])
def test_a_child_that_is_killed_leaves_nothing_and_the_next_attempt_stores_all(
    place: Place, ledger: Ledger, word: str
) -> None:
    job_id = ledger.submit(f"{word} 100")
    run_job(place, job_id, 1)
    assert (ledger.job(job_id).status, ledger.job(job_id).attempt) == (Status.QUEUED, 2)
    assert names(place) == []
    place.slot.ready()
    run_job(place, job_id, 2)
    assert ledger.job(job_id).status is Status.SUCCEEDED
    assert names(place) == [ArtefactName(job_id, 2)]


def ran(place: Place, ledger: Ledger) -> tuple[Lease, Success]:
    """An attempt whose child has answered, and nothing more."""
    job_id: UUID = ledger.submit("store 100")
    lease = place.database.run(leases.claim, job_id, 1, WORKER, 60.0)
    assert lease is not None
    ending = ending_of(place.slot, lease)
    assert isinstance(ending, Success)
    return lease, ending


def test_a_result_that_comes_too_late_is_dropped_with_its_files(place: Place, ledger: Ledger) -> None:
    lease, success = ran(place, ledger)
    place.database.run(losses.lost, lease, 3, Loss.LEASE_EXPIRED)
    store(place, lease, success)
    assert ledger.job(lease.job_id).status is Status.QUEUED
    assert names(place) == []


def test_files_that_are_gone_fail_the_job_and_not_the_worker(place: Place, ledger: Ledger) -> None:
    lease, success = ran(place, ledger)
    ArtefactStore(place.settings.artefacts_dir()).remove(ArtefactName(lease.job_id, 1))
    store(place, lease, success)
    assert (ledger.job(lease.job_id).status, ledger.job(lease.job_id).reason) == (Status.FAILED, "internal")


def test_a_disk_that_is_full_when_a_result_gets_its_place_is_the_reason_and_no_incident(
    place: Place, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: ArtefactStore, name: ArtefactName) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    lease, success = ran(place, ledger)
    monkeypatch.setattr(ArtefactStore, "place", full)
    store(place, lease, success)
    job = ledger.job(lease.job_id)
    assert (job.reason, job.error) == ("unavailable", "the result cannot be stored on the disk: it is full")
    assert names(place) == []


def test_what_is_stored_twice_is_stored_once(place: Place, ledger: Ledger) -> None:
    """The commit came through, and its answer did not."""
    lease, success = ran(place, ledger)
    store(place, lease, success)
    store(place, lease, success)
    assert ledger.history(lease.job_id) == ["submitted", "started", "succeeded"]
    assert names(place) == [ArtefactName(lease.job_id, 1)]
