import httpx
import pytest

from tests.support.api import RESULT, Api
from warpfold.app.jobs.views import JobPage


def ids(response: httpx.Response) -> list[str]:
    assert response.status_code == 200, response.text
    JobPage.model_validate_json(response.content)
    return [job["id"] for job in response.json()["items"]]


def test_no_jobs_are_an_empty_page(http: httpx.Client) -> None:
    assert http.get("/v1/jobs").json() == {"items": [], "next_cursor": None}


def test_pages_are_newest_first_and_meet_without_gap_or_overlap(api: Api, http: httpx.Client) -> None:
    jobs = [api.submit() for _ in range(7)]
    seen: list[str] = []
    cursor = None
    sizes = []
    while True:
        response = http.get("/v1/jobs", params={"limit": 3} | ({} if cursor is None else {"cursor": cursor}))
        seen += ids(response)
        sizes.append(len(response.json()["items"]))
        cursor = response.json()["next_cursor"]
        if cursor is None:
            break
    assert seen == jobs[::-1]
    assert sizes == [3, 3, 1]


def test_jobs_that_arrive_meanwhile_do_not_shift_a_page(api: Api, http: httpx.Client) -> None:
    jobs = [api.submit() for _ in range(4)]
    first = http.get("/v1/jobs?limit=2")
    api.submit()
    second = http.get("/v1/jobs", params={"limit": 2, "cursor": first.json()["next_cursor"]})
    assert ids(first) + ids(second) == jobs[::-1]


def test_a_full_last_page_has_no_next(api: Api, http: httpx.Client) -> None:
    api.submit()
    api.submit()
    assert http.get("/v1/jobs?limit=2").json()["next_cursor"] is None


def test_filters_by_status_kind_and_owner(api: Api, http: httpx.Client) -> None:
    queued, running, done = api.submit(), api.submit(), api.submit("bob")
    api.claim(running)
    api.finish(api.claim(done))
    assert ids(http.get("/v1/jobs?status=queued")) == [queued]
    assert ids(http.get("/v1/jobs?status=running")) == [running]
    assert ids(http.get("/v1/jobs?status=succeeded")) == [done]
    assert ids(http.get("/v1/jobs?status=failed")) == []
    assert ids(http.get("/v1/jobs?owner=bob")) == [done]
    assert ids(http.get("/v1/jobs?owner=carl")) == []
    assert ids(http.get("/v1/jobs?owner=ann&status=running&kind=reduce")) == [running]
    assert ids(http.get("/v1/jobs?kind=benchmark")) == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tag=course", [1, 0]),
        ("tag=course:p05", [0]),
        ("tag=course:p06", [1]),
        ("tag=course:", []),
        ("tag=course&tag=run:a:b", [1]),
        ("tag=empty:", [2]),
        ("tag=nothing", []),
    ],
)
def test_filters_by_tags(api: Api, http: httpx.Client, query: str, found: list[int]) -> None:
    tags = [{"course": "p05"}, {"course": "p06", "run": "a:b"}, {"empty": ""}]
    jobs = [api.submit(tags=one) for one in tags]
    assert ids(http.get(f"/v1/jobs?{query}")) == [jobs[index] for index in found]


def test_many_values_are_listed_in_brief_and_shown_whole(api: Api, http: httpx.Client) -> None:
    values = [float(i) for i in range(1000)]
    job_id = api.submit(source={"type": "values", "values": values, "dtype": "float64"})
    listed = http.get("/v1/jobs").json()["items"][0]["spec"]["source"]
    assert listed == {"type": "values", "dtype": "float64", "count": 1000, "first": values[:16]}
    assert http.get(f"/v1/jobs/{job_id}").json()["spec"]["source"]["values"] == values


def test_the_queue_is_in_order_of_priority_and_age(api: Api, http: httpx.Client) -> None:
    names = ["normal", "low", "high", "normal", "high"]
    jobs = [api.submit(priority=name) for name in names]
    expected = dict(zip(jobs, [3, 5, 1, 4, 2], strict=True))
    listed = {job["id"]: job["queue_position"] for job in http.get("/v1/jobs").json()["items"]}
    alone = {job_id: http.get(f"/v1/jobs/{job_id}").json()["queue_position"] for job_id in jobs}
    assert listed == expected
    assert alone == expected


def test_only_queued_jobs_have_a_place_in_the_queue(api: Api, http: httpx.Client) -> None:
    running = api.submit()
    api.claim(running)
    waiting = api.submit()
    listed = {job["id"]: job["queue_position"] for job in http.get("/v1/jobs").json()["items"]}
    assert listed == {running: None, waiting: 1}


def test_results_of_reductions_are_in_the_list(api: Api, http: httpx.Client) -> None:
    api.finish(api.claim(api.submit()))
    assert http.get("/v1/jobs").json()["items"][0]["result"] == RESULT


def test_results_of_studies_are_left_out_of_the_list_and_shown_whole(api: Api, http: httpx.Client) -> None:
    spec = {"kind": "benchmark", "strategies": ["exact"], "sizes": [1000]}
    study = http.post("/v1/jobs", json=spec).json()["id"]
    api.finish(api.claim(study))
    [listed] = http.get("/v1/jobs").json()["items"]
    assert (listed["status"], listed["result"]) == ("succeeded", None)
    assert http.get(f"/v1/jobs/{study}").json()["result"] == RESULT
