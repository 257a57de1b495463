from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.api import THREE_VALUES, Api


def test_the_same_key_and_body_give_the_first_job_with_200(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    first = http.post("/v1/jobs", json=THREE_VALUES)
    again = http.post("/v1/jobs", json=THREE_VALUES)
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["Location"] == first.headers["Location"]
    assert len(http.get("/v1/jobs").json()["items"]) == 1


def test_the_first_job_is_given_as_it_is_by_now(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    job_id = http.post("/v1/jobs", json=THREE_VALUES).json()["id"]
    api.finish(api.claim(job_id))
    assert http.post("/v1/jobs", json=THREE_VALUES).json()["status"] == "succeeded"


def test_the_same_key_with_another_body_is_422_and_named(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    http.post("/v1/jobs", json=THREE_VALUES)
    response = http.post("/v1/jobs", json={**THREE_VALUES, "op": "mean"})
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "Idempotency-Key"
    assert len(http.get("/v1/jobs").json()["items"]) == 1


def test_keys_of_two_users_are_two_keys(api: Api) -> None:
    key = {"Idempotency-Key": "a-key"}
    jobs = {api.client(user, **key).post("/v1/jobs", json=THREE_VALUES).json()["id"] for user in ("ann", "bob")}
    assert len(jobs) == 2


def test_without_a_key_every_submission_is_a_job(http: httpx.Client) -> None:
    assert len({http.post("/v1/jobs", json=THREE_VALUES).json()["id"] for _ in range(3)}) == 3


def test_a_refused_submission_does_not_use_the_key_up(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    assert http.post("/v1/jobs", json={**THREE_VALUES, "op": "total"}).status_code == 422
    assert http.post("/v1/jobs", json=THREE_VALUES).status_code == 202


def test_requests_with_one_key_that_race_make_one_job(api: Api) -> None:
    http = api.client(**{"Idempotency-Key": "a-key"})
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: http.post("/v1/jobs", json=THREE_VALUES), range(24)))
    assert sorted(answer.status_code for answer in answers) == [200] * 23 + [202]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(http.get("/v1/jobs").json()["items"]) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_a_key_that_cannot_be_kept_is_422(refusing: httpx.Client, key: str) -> None:
    assert refusing.post("/v1/jobs", json=THREE_VALUES, headers={"Idempotency-Key": key}).status_code == 422
