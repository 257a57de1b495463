import json

import httpx
import pytest

from tests.support.api import RESULT, Api
from warpfold.app.jobs import leases
from warpfold.contract.states import Reason


def test_a_result_is_what_the_worker_stored(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    api.finish(api.claim(job_id))
    assert http.get(f"/v1/jobs/{job_id}/result").json() == RESULT
    assert http.get(f"/v1/jobs/{job_id}").json()["result"] == RESULT


@pytest.mark.parametrize("value", ["-0.0", "5e-324", "123456789012345678901234567890", "0.1", '"nan"', "true"])
def test_a_value_is_passed_on_letter_by_letter(api: Api, http: httpx.Client, value: str) -> None:
    job_id = api.submit()
    api.finish(api.claim(job_id), {**RESULT, "value": json.loads(value)})
    assert f'"value": {value}' in http.get(f"/v1/jobs/{job_id}/result").text
    assert f'"value": {value}' in http.get(f"/v1/jobs/{job_id}").text


def test_before_the_end_it_is_a_409_problem(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    for status in ("queued", "running"):
        response = http.get(f"/v1/jobs/{job_id}/result")
        assert response.status_code == 409
        assert response.headers["Content-Type"] == "application/problem+json"
        assert response.json()["job_status"] == status
        assert int(response.headers["Retry-After"]) >= 1
        if status == "queued":
            api.claim(job_id)


def test_of_a_failed_job_it_is_a_409_problem_with_the_reason(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    api.database.run(leases.fail, api.claim(job_id), Reason.OUT_OF_MEMORY, "It does not fit.")
    problem = http.get(f"/v1/jobs/{job_id}/result").json()
    assert (problem["status"], problem["job_reason"], problem["job_error"]) == (
        409,
        "out_of_memory",
        "It does not fit.",
    )
    job = http.get(f"/v1/jobs/{job_id}").json()
    assert (job["status"], job["reason"], job["error"]) == ("failed", "out_of_memory", "It does not fit.")


def test_of_a_cancelled_job_it_is_a_409_problem(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    http.post(f"/v1/jobs/{job_id}/cancel")
    assert http.get(f"/v1/jobs/{job_id}/result").json()["job_status"] == "cancelled"
