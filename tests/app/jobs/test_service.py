import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from tests.support.api import THREE_VALUES, Api
from warpfold.app.http.headers import matches
from warpfold.app.jobs import leases


@contextmanager
def meanwhile(api: Api, job_id: str, work: Callable[[], object]) -> Iterator[None]:
    """Do `work` in another thread, once the block's request for the job is held."""

    def run() -> None:
        api.until_watched(job_id)
        work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def wait(seconds: int) -> dict[str, str]:
    return {"Prefer": f"wait={seconds}"}


@pytest.mark.usefixtures("without_timer")
def test_a_held_poll_is_answered_when_the_job_starts(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    started = time.monotonic()
    with meanwhile(api, job_id, lambda: api.claim(job_id)):
        response = http.get(f"/v1/jobs/{job_id}", headers=wait(40))
    assert response.json()["status"] == "running"
    assert response.headers["Preference-Applied"] == "wait=40"
    assert time.monotonic() - started < 30


def test_a_held_poll_is_answered_when_the_job_ends(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    lease = api.claim(job_id)
    with meanwhile(api, job_id, lambda: api.finish(lease)):
        response = http.get(f"/v1/jobs/{job_id}", headers=wait(20))
    assert response.json()["status"] == "succeeded"
    assert response.json()["result"]["value"] == 1.0


def test_a_held_poll_sleeps_through_progress(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    lease = api.claim(job_id)
    started = time.monotonic()
    with meanwhile(api, job_id, lambda: api.database.run(leases.note_progress, lease, 1, 3, "elements")):
        response = http.get(f"/v1/jobs/{job_id}", headers=wait(1))
    assert time.monotonic() - started >= 1
    assert response.json()["progress"]["done"] == 1


def test_with_an_etag_it_is_answered_at_progress(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    lease = api.claim(job_id)
    etag = http.get(f"/v1/jobs/{job_id}").headers["ETag"]
    with meanwhile(api, job_id, lambda: api.database.run(leases.note_progress, lease, 1, 3, "elements")):
        response = http.get(f"/v1/jobs/{job_id}", headers={**wait(20), "If-None-Match": etag})
    assert response.json()["progress"] == {"done": 1, "total": 3, "unit": "elements"}


def test_with_an_outdated_etag_it_is_answered_at_once(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    etag = http.get(f"/v1/jobs/{job_id}").headers["ETag"]
    api.claim(job_id)
    started = time.monotonic()
    response = http.get(f"/v1/jobs/{job_id}", headers={**wait(20), "If-None-Match": etag})
    assert (response.status_code, response.json()["status"]) == (200, "running")
    assert time.monotonic() - started < 15


def test_when_nothing_happens_it_is_304_with_an_etag_and_200_without(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    started = time.monotonic()
    response = http.get(f"/v1/jobs/{job_id}", headers=wait(1))
    assert (response.status_code, response.json()["status"]) == (200, "queued")
    assert time.monotonic() - started >= 1
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
    assert time.monotonic() - started < 15


def test_a_held_submission_is_answered_at_the_end_and_not_at_the_start(api: Api, http: httpx.Client) -> None:
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(lambda: http.post("/v1/jobs", json=THREE_VALUES, headers=wait(40)))
        while not (jobs := api.client("bob").get("/v1/jobs").json()["items"]):
            time.sleep(0.01)
        api.until_watched(jobs[0]["id"])
        lease = api.claim(jobs[0]["id"])
        time.sleep(0.2)
        api.finish(lease)
        response = held.result()
    assert (response.status_code, response.json()["status"]) == (202, "succeeded")
    assert response.headers["Preference-Applied"] == "wait=40"


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
    with meanwhile(api, job_id, start_silently):
        response = http.get(f"/v1/jobs/{job_id}", headers=wait(20))
    assert response.json()["status"] == "running"
    assert time.monotonic() - started < 15


def test_many_wait_for_one_job_and_all_are_told(api: Api) -> None:
    job_id = api.submit()
    statuses: list[str] = []

    def look() -> None:
        statuses.append(api.client().get(f"/v1/jobs/{job_id}", headers=wait(40)).json()["status"])

    threads = [threading.Thread(target=look) for _ in range(20)]
    for thread in threads:
        thread.start()
    api.until_watched(job_id, by=20)
    api.claim(job_id)
    for thread in threads:
        thread.join()
    assert statuses == ["running"] * 20


@pytest.mark.parametrize("prefer", ["respond-async", "wait", "wait=soon", "wait=-1", "wait=1.5"])
def test_another_preference_is_ignored(api: Api, http: httpx.Client, prefer: str) -> None:
    response = http.get(f"/v1/jobs/{api.submit()}", headers={"Prefer": prefer})
    assert response.status_code == 200
    assert "Preference-Applied" not in response.headers


def etag(http: httpx.Client, job_id: str) -> str:
    value: str = http.get(f"/v1/jobs/{job_id}").headers["ETag"]
    assert value.startswith('"')
    assert value.endswith('"')
    return value


def poll(http: httpx.Client, job_id: str, held: str) -> int:
    return http.get(f"/v1/jobs/{job_id}", headers={"If-None-Match": held}).status_code


def test_a_poll_with_the_current_etag_is_304_without_a_body(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    held = etag(http, job_id)
    response = http.get(f"/v1/jobs/{job_id}", headers={"If-None-Match": held})
    assert (response.status_code, response.content) == (304, b"")
    assert response.headers["ETag"] == held


@pytest.mark.parametrize("wrapped", ["W/{}", '"other", {}', '{} , W/"x"'])
def test_it_may_be_weak_or_one_of_several(api: Api, http: httpx.Client, wrapped: str) -> None:
    job_id = api.submit()
    assert poll(http, job_id, wrapped.format(etag(http, job_id))) == 304


def test_a_star_matches_whatever_the_job_is(api: Api, http: httpx.Client) -> None:
    assert poll(http, api.submit(), "*") == 304


def test_another_jobs_etag_does_not_match(api: Api, http: httpx.Client) -> None:
    first, second = api.submit(), api.submit()
    assert poll(http, first, etag(http, second)) == 200


def test_start_progress_and_end_each_make_a_new_etag(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    seen = [etag(http, job_id)]
    lease = api.claim(job_id)
    seen.append(etag(http, job_id))
    api.database.run(leases.note_progress, lease, 1, 3, "elements")
    seen.append(etag(http, job_id))
    assert poll(http, job_id, seen[-2]) == 200
    api.finish(lease)
    seen.append(etag(http, job_id))
    assert len(set(seen)) == len(seen)
    assert poll(http, job_id, seen[-1]) == 304


def test_a_heartbeat_without_news_makes_none(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    lease = api.claim(job_id)
    held = etag(http, job_id)
    api.database.run(leases.renew, [lease], 60.0)
    assert poll(http, job_id, held) == 304


def test_moving_up_in_the_queue_makes_a_new_etag(api: Api, http: httpx.Client) -> None:
    first, second = api.submit(), api.submit()
    held = etag(http, second)
    api.claim(first)
    response = http.get(f"/v1/jobs/{second}", headers={"If-None-Match": held})
    assert (response.status_code, response.json()["queue_position"]) == (200, 1)


@pytest.mark.parametrize("held", ["", "x", '"', "W/", ",,,", "'*'"])
def test_nonsense_does_not_match(held: str) -> None:
    assert not matches(held, '"a.1.0"')
