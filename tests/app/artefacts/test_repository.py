"""Stored results and crashes, quotas and time: nothing that counts is lost, and nothing else stays on the disk."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import httpx
import numpy as np
import pytest
from sqlalchemy import Connection, text

from tests.support.api import Api
from tests.support.artefacts import keep, store_of, written
from warpfold.app.artefacts import repository
from warpfold.app.artefacts.repository import OverQuota, tidy
from warpfold.app.artefacts.store import ArtefactName, ArtefactStore
from warpfold.app.db import BlockingDatabase
from warpfold.app.jobs import leases, losses, transitions
from warpfold.app.jobs.attempt import Success
from warpfold.app.quotas.bytes_held import bytes_held
from warpfold.contract.folders import incoming_artefact
from warpfold.contract.states import Loss

EVER = timedelta(days=365)
VALUES = np.arange(300.0)
StoreResult = Callable[..., UUID]


def names(api: Api) -> set[ArtefactName]:
    return set(store_of(api).names())


def tidied(api: Api, older_than: timedelta = EVER) -> int:
    return tidy(api.database, store_of(api), older_than)


def test_a_stored_result_stays_with_its_job(api: Api, store_result: StoreResult) -> None:
    job_id = store_result(VALUES)
    assert tidied(api) == 0
    assert names(api) == {ArtefactName(job_id, 1)}
    api.database.run(lambda connection: connection.execute(text("delete from jobs")))
    assert tidied(api) == 1
    assert names(api) == set()


def test_it_goes_before_its_job_when_its_own_time_is_over(
    http: httpx.Client, api: Api, store_result: StoreResult
) -> None:
    job_id = store_result(VALUES)

    def let_three_days_pass(connection: Connection) -> None:
        connection.execute(text("update artefacts set created_at = now() - interval '3 days'"))

    api.database.run(let_three_days_pass)
    assert tidied(api, timedelta(days=4)) == 0
    assert tidied(api, timedelta(days=2)) == 1
    assert http.get(f"/v1/jobs/{job_id}/artefact").status_code == 410
    assert http.get(f"/v1/jobs/{job_id}").json()["result"]["artefact"]["rows"] == 300


def test_what_a_running_attempt_writes_is_never_swept(api: Api) -> None:
    lease = api.claim(api.submit())
    stored = written(api, lease, VALUES)
    assert tidied(api) == 0
    keep(api, lease, stored)
    assert tidied(api) == 0
    assert store_of(api).path(ArtefactName(lease.job_id, 1)).exists()


def test_what_a_lost_attempt_wrote_is_swept_and_the_next_one_is_not(api: Api) -> None:
    lease = api.claim(api.submit())
    written(api, lease, VALUES)
    api.database.run(losses.lost, lease, 3, Loss.CHILD_DIED)
    second = api.claim(str(lease.job_id), 2)
    stored = written(api, second, VALUES)
    assert tidied(api) == 1
    assert names(api) == {ArtefactName(lease.job_id, 2)}
    keep(api, second, stored)
    assert tidied(api) == 0


def test_both_quotas_are_one(http: httpx.Client, api: Api, store_result: StoreResult) -> None:
    job_id = store_result(VALUES)
    owner = api.database.run(lambda connection: repository.get(connection, job_id))
    assert owner is not None
    assert api.database.run(bytes_held, owner.owner_id) == 300 * 8 + 128
    lease = api.claim(api.submit())
    stored = written(api, lease, VALUES)
    with pytest.raises(OverQuota, match="5,056 bytes, more than the quota of 5,055"):
        keep(api, lease, stored, 5_055)
    assert http.get(f"/v1/jobs/{lease.job_id}").json()["status"] == "running"
    other = api.claim(api.submit("bob"))
    keep(api, other, written(api, other, VALUES), 5_055)
    keep(api, lease, stored, 5_056)
    keep_again = partial(repository.keep, nbytes=stored.note.bytes, quota=0)
    api.database.run(keep_again, store_of(api), ArtefactName(lease.job_id, 1))
    assert api.database.run(bytes_held, owner.owner_id) == 2 * (300 * 8 + 128)


class DyingStore(ArtefactStore):
    """A store whose process is killed before or after the files have their place, and before the commit."""

    def __init__(self, api: Api, when: str) -> None:
        super().__init__(api.settings.artefacts_dir())
        self._when = when

    def place(self, name: ArtefactName) -> None:
        if self._when == "after":
            super().place(name)
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_that_is_killed_while_it_stores_loses_nothing_and_leaves_nothing(api: Api, when: str) -> None:
    lease = api.claim(api.submit())
    stored = written(api, lease, VALUES)
    child = os.fork()
    if child == 0:

        def end(connection: Connection) -> None:
            leases.succeed(connection, [(lease, Success({"value": 1}))])
            repository.keep(
                connection, DyingStore(api, when), ArtefactName(lease.job_id, 1), stored.note.bytes, 1 << 40
            )

        BlockingDatabase(api.settings.database_url, application="killed").run(end)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert tidied(api) == 0, "the attempt runs, as far as anybody knows"
    api.database.run(losses.lost, lease, 3, Loss.WORKER_DIED)
    assert tidied(api) == 1
    assert names(api) == set()
    again = api.claim(str(lease.job_id), 2)
    keep(api, again, written(api, again, VALUES))
    assert np.load(store_of(api).path(ArtefactName(lease.job_id, 2)) / "values.npy").tolist() == VALUES.tolist()
    assert tidied(api) == 0


def test_retention_of_jobs_takes_their_files(api: Api, store_result: StoreResult) -> None:
    store_result(VALUES)
    api.database.run(
        lambda connection: connection.execute(text("update jobs set finished_at = now() - interval '9 d'"))
    )
    assert api.database.run(transitions.remove_old, timedelta(days=8)) == 1
    assert tidied(api) == 1


def test_other_files_in_the_folder_are_left_alone(api: Api, store_result: StoreResult) -> None:
    store_result(VALUES)
    folder = api.settings.artefacts_dir()
    for name in ("ab/notes", f"incoming/{uuid4()}", "incoming/no-job-1"):
        (folder / name).mkdir(parents=True)
    assert tidied(api) == 0
    assert len(names(api)) == 1
    assert incoming_artefact(folder, uuid4(), 1).parent.exists()


def test_a_folder_that_is_not_there_is_empty(api: Api, database: Any, tmp_path: Any) -> None:
    assert tidy(database, ArtefactStore(tmp_path / "nowhere"), EVER) == 0
