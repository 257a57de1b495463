import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from app.jobs import leases
from tests.app.api import THREE_VALUES, Api


@contextmanager
def meanwhile(work: Callable[[], object], after_s: float = 0.3) -> Iterator[None]:
    """Do `work` in another thread, a moment after the block begins."""
    timer = threading.Timer(after_s, work)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def wait(seconds: int) -> dict[str, str]:
    return {"Prefer": f"wait={seconds}"}


def test_a_held_poll_is_answered_when_the_job_starts(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    started = time.monotonic()
    with meanwhile(lambda: api.claim(job_id)):
        response = http.get(f"/v1/jobs/{job_id}", headers=wait(20))
    assert response.json()["status"] == "running"
    assert response.headers["Preference-Applied"] == "wait=20"
    assert 0.25 < time.monotonic() - started < 0.9  # by notification: the timer would have taken a second


def test_a_held_poll_is_answered_when_the_job_ends(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    lease = api.claim(job_id)
    with meanwhile(lambda: api.finish(lease)):
        response = http.get(f"/v1/jobs/{job_id}", headers=wait(20))
    assert response.json()["status"] == "succeeded"
    assert response.json()["result"]["value"] == 1.0


def test_a_held_poll_sleeps_through_progress(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    lease = api.claim(job_id)
    started = time.monotonic()
    with meanwhile(lambda: api.database.run(leases.renew, lease, 60.0, (1, 3, "elements"))):
        response = http.get(f"/v1/jobs/{job_id}", headers=wait(1))
    assert time.monotonic() - started >= 1
    assert response.json()["progress"]["done"] == 1


def test_with_an_etag_it_is_answered_at_progress(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    lease = api.claim(job_id)
    etag = http.get(f"/v1/jobs/{job_id}").headers["ETag"]
    with meanwhile(lambda: api.database.run(leases.renew, lease, 60.0, (1, 3, "elements"))):
        response = http.get(f"/v1/jobs/{job_id}", headers={**wait(20), "If-None-Match": etag})
    assert response.json()["progress"] == {"done": 1, "total": 3, "unit": "elements"}


def test_with_an_outdated_etag_it_is_answered_at_once(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    etag = http.get(f"/v1/jobs/{job_id}").headers["ETag"]
    api.claim(job_id)
    started = time.monotonic()
    response = http.get(f"/v1/jobs/{job_id}", headers={**wait(20), "If-None-Match": etag})
    assert (response.status_code, response.json()["status"]) == (200, "running")
    assert time.monotonic() - started < 1


def test_when_nothing_happens_it_is_304_with_an_etag_and_200_without(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    started = time.monotonic()
    response = http.get(f"/v1/jobs/{job_id}", headers=wait(1))
    assert (response.status_code, response.json()["status"]) == (200, "queued")
    assert 1 <= time.monotonic() - started < 3
    etag = response.headers["ETag"]
    held = http.get(f"/v1/jobs/{job_id}", headers={**wait(1), "If-None-Match": etag})
    assert (held.status_code, held.headers["Preference-Applied"]) == (304, "wait=1")


def test_an_ended_job_is_answered_at_once(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    api.finish(api.claim(job_id))
    started = time.monotonic()
    response = http.get(f"/v1/jobs/{job_id}", headers=wait(20))
    held = http.get(f"/v1/jobs/{job_id}", headers={**wait(20), "If-None-Match": response.headers["ETag"]})
    assert (response.json()["status"], held.status_code) == ("succeeded", 304)
    assert time.monotonic() - started < 1


def test_a_held_submission_is_answered_at_the_end_and_not_at_the_start(api: Api, http: httpx.Client) -> None:
    def run() -> None:
        job_id = http.get("/v1/jobs").json()["items"][0]["id"]
        lease = api.claim(job_id)
        time.sleep(0.2)
        api.finish(lease)

    with meanwhile(run):
        response = http.post("/v1/jobs", json=THREE_VALUES, headers=wait(20))
    assert (response.status_code, response.json()["status"]) == (202, "succeeded")
    assert response.headers["Preference-Applied"] == "wait=20"


def test_a_held_submission_is_answered_in_time_when_nobody_works(http: httpx.Client) -> None:
    response = http.post("/v1/jobs", json=THREE_VALUES, headers=wait(1))
    assert (response.status_code, response.json()["status"]) == (202, "queued")


def test_a_lost_notification_costs_a_second_and_no_more(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()

    def start_silently() -> None:
        with api.database._engine.begin() as connection:
            connection.exec_driver_sql(
                "update jobs set status = 'running', version = 2, lease_expires_at = now() + interval '1 minute'"
            )

    started = time.monotonic()
    with meanwhile(start_silently):
        response = http.get(f"/v1/jobs/{job_id}", headers=wait(20))
    assert response.json()["status"] == "running"
    assert time.monotonic() - started < 3


def test_many_wait_for_one_job_and_all_are_told(api: Api) -> None:
    job_id = api.submit()
    found: list[str] = []

    def look() -> None:
        found.append(api.client().get(f"/v1/jobs/{job_id}", headers=wait(20)).json()["status"])

    threads = [threading.Thread(target=look) for _ in range(20)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    api.claim(job_id)
    for thread in threads:
        thread.join(5)
    assert found == ["running"] * 20


@pytest.mark.parametrize("prefer", ["respond-async", "wait", "wait=soon", "wait=-1", "wait=1.5"])
def test_another_preference_is_ignored(api: Api, http: httpx.Client, prefer: str) -> None:
    response = http.get(f"/v1/jobs/{api.submit()}", headers={"Prefer": prefer})
    assert response.status_code == 200
    assert "Preference-Applied" not in response.headers
