"""Changes of a queued or running job: it is cancelled, and waiting raises its priority."""

from uuid import UUID

import httpx
import pytest

from tests.support.api import Api
from tests.support.ledger import Ledger
from warpfold.app.jobs import leases, transitions, workers
from warpfold.app.jobs.dispatch_state import Depth
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.contract.states import Reason
from warpfold.worker.dispatcher import choose

CPU = WorkerInfo("here:cpu", "cpu", "cpu", "here", 1, "0", None)


@pytest.fixture
def ledger(api: Api) -> Ledger:
    """The jobs of the api."""
    return Ledger(api.database)


def cancel(api: Api, job_id: str, user: str = "ann") -> httpx.Response:
    return api.client(user).post(f"/v1/jobs/{job_id}/cancel")


def test_a_queued_job_is_cancelled_at_once(api: Api) -> None:
    response = cancel(api, api.submit())
    assert (response.status_code, response.json()["status"]) == (202, "cancelled")
    assert response.json()["finished_at"] is not None


def test_a_running_job_gets_a_note_that_its_worker_finds(api: Api) -> None:
    job_id = api.submit()
    lease = api.claim(job_id)
    response = cancel(api, job_id)
    assert (response.status_code, response.json()["status"]) == (202, "running")
    assert response.json()["cancel_requested"]
    assert api.database.run(leases.renew, [lease], 60.0)[lease.job_id]
    api.database.run(leases.cancelled, lease)
    assert api.client().get(f"/v1/jobs/{job_id}").json()["status"] == "cancelled"


def test_asking_again_changes_nothing(api: Api) -> None:
    running, queued = api.submit(), api.submit()
    api.claim(running)
    for job_id in (running, queued):
        first, second = cancel(api, job_id), cancel(api, job_id)
        assert (first.status_code, second.status_code) == (202, 202)
        assert first.json() == second.json()


def test_a_job_that_ended_otherwise_is_409_and_stays_so(api: Api) -> None:
    done, failed = api.submit(), api.submit()
    api.finish(api.claim(done))
    api.database.run(leases.fail, api.claim(failed), Reason.TIMEOUT, "It took too long.")
    for job_id, status in ((done, "succeeded"), (failed, "failed")):
        response = cancel(api, job_id)
        assert response.status_code == 409
        assert response.json()["job_status"] == status
        assert api.client().get(f"/v1/jobs/{job_id}").json()["status"] == status


def test_another_users_job_is_403_and_goes_on(api: Api) -> None:
    job_id = api.submit("ann")
    response = cancel(api, job_id, "bob")
    assert response.status_code == 403
    assert response.headers["Content-Type"] == "application/problem+json"
    assert api.client().get(f"/v1/jobs/{job_id}").json()["status"] == "queued"


def test_an_admin_may_cancel_anybodys_job(api: Api) -> None:
    assert cancel(api, api.submit("ann"), "root").json()["status"] == "cancelled"


def test_everybody_sees_everybodys_jobs(api: Api) -> None:
    job_id = api.submit("ann")
    assert api.client("bob").get(f"/v1/jobs/{job_id}").json()["owner"] == "ann"
    assert [job["id"] for job in api.client("bob").get("/v1/jobs").json()["items"]] == [job_id]


def waits_as(http: httpx.Client, job_id: str) -> tuple[str, str | None]:
    job = http.get(f"/v1/jobs/{job_id}").json()
    return job["priority"], job["waits_as"]


def test_what_does_not_wait_waits_as_nothing(api: Api) -> None:
    job_id = api.submit()
    api.claim(job_id)
    assert waits_as(api.client(), job_id) == ("normal", None)


def test_waiting_raises_what_a_job_waits_as(api: Api, ledger: Ledger) -> None:
    http = api.client()
    low, normal, young = api.submit(priority="low"), api.submit(), api.submit()
    ledger.age(UUID(low), 150)
    ledger.age(UUID(normal), 250)
    assert api.database.run(transitions.raise_waiting, 100.0, 10) == 2
    assert [waits_as(http, job_id)[1] for job_id in (low, normal, young)] == ["normal", "high", "normal"]
    ledger.age(UUID(low), 100)
    assert api.database.run(transitions.raise_waiting, 100.0, 10) == 1
    assert api.database.run(transitions.raise_waiting, 100.0, 10) == 0
    assert [waits_as(http, job_id)[1] for job_id in (low, normal, young)] == ["high", "high", "normal"]


def test_the_oldest_are_raised_first_and_so_many_at_a_time(api: Api, ledger: Ledger) -> None:
    http = api.client()
    mine = [api.submit() for _ in range(3)]
    for job_id in mine:
        ledger.age(UUID(job_id), 1000)
    assert [api.database.run(transitions.raise_waiting, 100.0, 2) for _ in range(3)] == [2, 1, 0]
    assert [waits_as(http, job_id)[1] for job_id in mine] == ["high"] * 3


def test_a_raised_job_has_a_new_etag_and_a_place_further_ahead(api: Api, ledger: Ledger) -> None:
    http = api.client()
    before, old = api.submit(), api.submit("bob")
    answer = http.get(f"/v1/jobs/{old}")
    assert answer.json()["queue_position"] == 2
    ledger.age(UUID(old), 1000)
    ledger.age(UUID(before), -1000)
    api.database.run(transitions.raise_waiting, 100.0, 1)
    api.database.run(transitions.raise_waiting, 100.0, 10)
    again = http.get(f"/v1/jobs/{old}", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 200
    assert (again.json()["waits_as"], again.json()["queue_position"]) == ("high", 1)


def test_a_low_job_is_served_though_normal_ones_never_cease(api: Api, ledger: Ledger) -> None:
    api.database.run(workers.report, CPU, "idle", None, 600.0)
    low = api.submit("bob", priority="low")
    ledger.age(UUID(low), 1000)
    served: list[str] = []
    while low not in served:
        assert len(served) < 4
        api.submit()
        api.submit()
        api.database.run(transitions.raise_waiting, 100.0, 10)
        for message in api.database.step(choose, Depth(1)):
            api.finish(api.claim(str(message.job_id)))
            served.append(str(message.job_id))
