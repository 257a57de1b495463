import httpx

from tests.support.api import Api
from warpfold.app.jobs import leases
from warpfold.contract.states import Reason


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
    assert api.database.run(leases.renew, lease, 60.0).cancel_requested
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
