"""Names, notes and tags of jobs are changed, and jobs are deleted, by their owners and by admins."""

from typing import Any

import httpx
import psycopg
import pytest

from tests.support.api import Api
from tests.support.batches import batch_of
from warpfold.app.db import conninfo


def ended(api: Api, user: str = "ann") -> str:
    job = api.submit(user)
    api.finish(api.claim(job))
    return job


def listed(http: httpx.Client, **chosen: Any) -> list[str]:
    return [job["id"] for job in http.get("/v1/jobs", params=chosen).json()["items"]]


def test_a_job_is_found_by_the_name_and_the_tags_that_it_was_given_later(api: Api, http: httpx.Client) -> None:
    job, other = ended(api), api.submit()
    edited = http.patch(f"/v1/jobs/{job}", json={"name": " first sweep ", "note": "a\nb", "tags": {"study": "x y"}})
    assert edited.status_code == 200, edited.text
    assert (edited.json()["name"], edited.json()["note"], edited.json()["tags"]) == (
        "first sweep",
        "a\nb",
        {"study": "x y"},
    )
    assert listed(http, text="swee") == listed(http, tag="study:x y") == listed(http, tag="study", text="y") == [job]
    http.patch(f"/v1/jobs/{job}", json={"name": None, "tags": {"run": "7"}})
    again = http.get(f"/v1/jobs/{job}").json()
    assert (again["name"], again["note"], again["tags"]) == (None, "a\nb", {"run": "7"})
    assert listed(http, text="swee") == listed(http, tag="study") == []
    assert listed(http, tag="run") == [job]
    http.patch(f"/v1/jobs/{other}", json={"tags": {"run": "8"}})
    assert listed(http, tag="run") == [other, job], "a waiting job, too"


def test_an_edit_is_an_event_and_the_end_of_the_stream_of_a_job_that_has_ended(api: Api, http: httpx.Client) -> None:
    job = ended(api)
    etag = http.get(f"/v1/jobs/{job}").headers["ETag"]
    assert http.patch(f"/v1/jobs/{job}", json={}).headers.get("ETag") is None
    assert http.get(f"/v1/jobs/{job}").headers["ETag"] == etag, "nothing was changed"
    http.patch(f"/v1/jobs/{job}", json={"note": "seen"})
    assert http.get(f"/v1/jobs/{job}").headers["ETag"] != etag
    events = http.get(f"/v1/jobs/{job}/events").text
    assert events.count("event: edited") == 1
    assert '"by": "ann"' in events
    last = events.rpartition("id: ")[2].partition("\n")[0].strip()
    assert http.get(f"/v1/jobs/{job}/events", headers={"Last-Event-ID": last}).status_code == 204


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        ({"name": "x" * 129}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"note": "x" * 4001}, "note"),
        ({"tags": {"a b": "c"}}, "tags.a b"),
        ({"tags": {str(n): "" for n in range(99)}}, "tags"),
        ({"owner": "bob"}, "owner"),
    ],
)
def test_what_no_job_can_have_is_refused_by_its_field(
    api: Api, http: httpx.Client, edit: dict[str, Any], field: str
) -> None:
    answer = http.patch(f"/v1/jobs/{api.submit()}", json=edit)
    assert (answer.status_code, [error["field"] for error in answer.json()["errors"]]) == (422, [field])


def test_a_deleted_job_is_gone_from_every_list(api: Api, http: httpx.Client) -> None:
    job, kept = ended(api), ended(api)
    for each in (job, kept):
        http.patch(f"/v1/jobs/{each}", json={"tags": {"study": "x"}})
    assert http.delete(f"/v1/jobs/{job}").status_code == 204
    assert http.get(f"/v1/jobs/{job}").status_code == 404
    assert http.delete(f"/v1/jobs/{job}").status_code == 404
    assert listed(http) == listed(http, tag="study:x") == [kept]


def test_a_job_is_not_deleted_while_something_counts_on_it(api: Api, http: httpx.Client) -> None:
    waiting, running = api.submit(), api.submit()
    api.claim(running)
    for job, state in ((waiting, "queued"), (running, "running")):
        answer = http.delete(f"/v1/jobs/{job}")
        assert (answer.status_code, answer.json()["job_status"]) == (409, state)
    preset = ended(api)
    part = ended(api)
    high = ended(api)
    batch = batch_of(api, 2)
    api.finish(api.claim(batch["jobs"][0]))
    with psycopg.connect(conninfo(api.settings.database_url)) as connection:
        connection.execute("update jobs set parent_id = %s where id = %s", (preset, part))
        connection.execute("update jobs set priority = 2, rank = 2 where id = %s", (high,))
    for job, why in ((part, "part of a preset"), (batch["jobs"][0], "part of the batch"), (high, "towards a quota")):
        answer = http.delete(f"/v1/jobs/{job}")
        assert (answer.status_code, why in answer.json()["detail"]) == (409, True), answer.text
    assert http.patch(f"/v1/jobs/{part}", json={"name": "x"}).json()["errors"][0]["field"] == "name"
    assert http.delete(f"/v1/jobs/{preset}").status_code == 204
    assert http.get(f"/v1/jobs/{part}").status_code == 404, "it goes with its preset"
