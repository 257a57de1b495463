import httpx
import pytest

from tests.support.api import Api
from warpfold.app.http.headers import matches
from warpfold.app.jobs import leases


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
    api.database.run(leases.renew, lease, 60.0, (1, 3, "elements"))
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
    api.database.run(leases.renew, lease, 60.0)
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
