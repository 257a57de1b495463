"""A batch says how its jobs stand: by its view, by one stream of events, and by holding a request."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import httpx
import pytest

from tests.support.api import Api
from tests.support.batches import batch_of, shown, specs, submitted
from tests.support.sse import Sent, events
from tests.support.waiting import until
from warpfold.app.batches import transitions
from warpfold.app.jobs import leases
from warpfold.app.jobs.transitions import remove_old
from warpfold.contract.states import Reason


def test_the_counts_follow_the_jobs(api: Api, http: httpx.Client) -> None:
    batch = batch_of(api, 3)
    assert shown(http, batch)["progress"] == {
        **{"total": 3, "done": 0, "queued": 3, "running": 0, "succeeded": 0, "failed": 0, "cancelled": 0}
    }
    first = api.claim(batch["jobs"][0])
    now = shown(http, batch)
    assert (now["status"], now["progress"]["queued"], now["progress"]["running"]) == ("running", 2, 1)
    assert now["started_at"] is not None
    api.finish(first)
    now = shown(http, batch)
    assert (now["status"], now["progress"]["done"], now["finished_at"]) == ("running", 1, None)
    for job_id in batch["jobs"][1:]:
        api.finish(api.claim(job_id))
    now = shown(http, batch)
    assert (now["status"], now["progress"]["succeeded"]) == ("succeeded", 3)
    last = http.get(f"/v1/jobs/{batch['jobs'][-1]}").json()
    assert now["finished_at"] == last["finished_at"].replace("+00:00", "Z")


def test_one_failed_job_makes_a_failed_batch_once_all_have_ended(api: Api, http: httpx.Client) -> None:
    batch = batch_of(api, 2)
    api.database.run(leases.fail, api.claim(batch["jobs"][0]), Reason.INTERNAL, "a sentence")
    assert shown(http, batch)["status"] == "running"
    api.finish(api.claim(batch["jobs"][1]))
    assert shown(http, batch)["status"] == "failed"


def test_a_batch_that_has_settled_answers_the_same_and_goes_after_its_jobs(api: Api, http: httpx.Client) -> None:
    batch, other = batch_of(api, 2), batch_of(api, 1)
    path = f"/v1/batches/{batch['id']}"
    for job_id in batch["jobs"]:
        api.finish(api.claim(job_id))
    before = http.get(path)
    assert api.database.run(transitions.settle, 10) == 1
    assert api.database.run(transitions.settle, 10) == 0
    after = http.get(path)
    assert (after.json(), after.headers["ETag"]) == (before.json(), before.headers["ETag"])
    at_once = timedelta(seconds=-1)
    assert api.database.run(transitions.remove_old, at_once, 10) == 0
    assert api.database.run(remove_old, at_once) == 2
    assert http.get(path).json() == before.json()  # the counts stay
    assert api.database.run(transitions.remove_old, at_once, 10) == 1
    assert http.get(path).status_code == 404
    assert http.get(f"/v1/batches/{other['id']}").status_code == 200


def test_the_list_is_the_users_own_newest_first_and_is_cut_by_cursor(api: Api, http: httpx.Client) -> None:
    ids = [batch_of(api, 1)["id"] for _ in range(3)]
    batch_of(api, 1, "bob")
    page = http.get("/v1/batches", params={"limit": 2}).json()
    assert [batch["id"] for batch in page["items"]] == [ids[2], ids[1]]
    rest = http.get("/v1/batches", params={"limit": 2, "cursor": page["next_cursor"]}).json()
    assert ([batch["id"] for batch in rest["items"]], rest["next_cursor"]) == ([ids[0]], None)
    assert [batch["owner"] for batch in http.get("/v1/batches", params={"owner": "bob"}).json()["items"]] == ["bob"]
    assert http.get("/v1/batches", params={"owner": "nobody"}).json()["items"] == []
    assert http.get("/v1/batches", params={"cursor": "x"}).status_code == 422
    assert http.get("/v1/batches", params={"status": "queued"}).status_code == 422


def test_a_batch_is_found_by_the_beginning_of_its_id_whosever_it_is(api: Api, http: httpx.Client) -> None:
    first = batch_of(api, 1)["id"]
    others = [batch_of(api, 1)["id"] for _ in range(3)]
    of_bob = submitted(api.client("bob"), {"specs": specs(1)})["id"]
    for length in (4, 8, 9, 13, 36):
        items = http.get("/v1/batches", params={"id": first[:length]}).json()["items"]
        assert first in [batch["id"] for batch in items]
        assert all(batch["id"].startswith(first[:length]) for batch in items)
    for asked, wanted in (
        ({"id": first.upper()}, [first]),
        ({"id": of_bob}, [of_bob]),
        ({"id": of_bob, "owner": "bob"}, [of_bob]),
        ({"id": of_bob, "owner": "ann"}, []),
        ({"id": others[0], "limit": 1}, [others[0]]),
        ({"id": "5f0c-be4b"}, []),
    ):
        assert [batch["id"] for batch in http.get("/v1/batches", params=asked).json()["items"]] == wanted, asked
    for text in ("5f0", "zzzz", "5f0%"):
        refused = http.get("/v1/batches", params={"id": text})
        assert refused.status_code == 422
        assert [error["field"] for error in refused.json()["errors"]] == ["id"]


def test_an_etag_changes_with_the_counts_and_only_with_them(api: Api, http: httpx.Client) -> None:
    batch = batch_of(api, 2)
    path = f"/v1/batches/{batch['id']}"
    etag = http.get(path).headers["ETag"]
    assert http.get(path, headers={"If-None-Match": etag}).status_code == 304
    lease = api.claim(batch["jobs"][0])
    other = http.get(path, headers={"If-None-Match": etag})
    assert (other.status_code, other.headers["ETag"] == etag) == (200, False)
    api.database.run(leases.put_back, [(lease, ())], "the worker is stopping")
    assert http.get(path).headers["ETag"] == etag


@pytest.mark.usefixtures("without_timer")
def test_a_held_request_is_answered_when_the_status_changes(api: Api, http: httpx.Client) -> None:
    batch = batch_of(api, 2)
    path = f"/v1/batches/{batch['id']}"
    answers: list[httpx.Response] = []
    waiting = threading.Thread(target=lambda: answers.append(http.get(path, headers={"Prefer": "wait=60"})))
    waiting.start()
    api.until_watched(batch["id"])
    lease = api.claim(batch["jobs"][0])
    waiting.join()
    assert answers[0].json()["status"] == "running"
    assert answers[0].headers["Preference-Applied"] == "wait=60"
    waiting = threading.Thread(target=lambda: answers.append(http.get(path, headers={"Prefer": "wait=60"})))
    waiting.start()
    api.until_watched(batch["id"])
    api.finish(lease)
    api.finish(api.claim(batch["jobs"][1]))
    waiting.join()
    assert answers[1].json()["status"] == "succeeded"
    assert http.get(path, headers={"Prefer": "wait=60"}).json()["status"] == "succeeded"


@contextmanager
def stream(api: Api, batch_id: str, **headers: str) -> Iterator[Iterator[Sent]]:
    with api.client().stream("GET", f"/v1/batches/{batch_id}/events", headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["Content-Type"].startswith("text/event-stream")
        yield events(response)


@pytest.mark.usefixtures("without_timer")
def test_one_stream_tells_of_all_jobs_and_ends_with_the_last(api: Api) -> None:
    batch = batch_of(api, 2)
    with stream(api, batch["id"]) as sent:
        assert next(sent).data["queued"] == 2
        lease = api.claim(batch["jobs"][0])
        assert next(sent).data["running"] == 1
        api.finish(lease)
        assert next(sent).data["succeeded"] == 1
        api.finish(api.claim(batch["jobs"][1]))
        rest = list(sent)
    assert (rest[-1].event, rest[-1].id) == ("succeeded", 3)
    assert rest[-1].data["progress"]["succeeded"] == 2
    assert rest[-1].data["at"] == shown(api.client(), batch)["finished_at"]
    assert {event.event for event in rest[:-1]} == {"progress"}


def test_many_changes_are_few_events(api: Api) -> None:
    batch = batch_of(api, 60)
    seen: list[Sent] = []

    def follow() -> None:
        with stream(api, batch["id"]) as sent:
            seen.extend(sent)

    following = threading.Thread(target=follow)
    following.start()
    until(lambda: len(seen) == 1)
    started = time.monotonic()
    for job_id in batch["jobs"]:
        api.finish(api.claim(job_id))
    following.join()
    pauses = (time.monotonic() - started) / 0.01  # after each look follows a pause of more than 10 ms
    assert seen[-1].event == "succeeded"
    assert len(seen) <= min(pauses + 4, 2 * 60)


def test_a_reconnection_after_the_end_is_told_to_stop(api: Api, http: httpx.Client) -> None:
    batch = batch_of(api, 1)
    api.finish(api.claim(batch["jobs"][0]))
    path = f"/v1/batches/{batch['id']}/events"
    assert http.get(path, headers={"Last-Event-ID": "2"}).status_code == 204
    assert http.get(path, headers={"Last-Event-ID": "1"}).status_code == 200


def test_what_is_not_there_is_404(refusing: httpx.Client) -> None:
    nowhere = "/v1/batches/00000000-0000-0000-0000-000000000000"
    answers = [refusing.get(f"{nowhere}{part}") for part in ("", "/events", "/results")]
    assert {answer.status_code for answer in [*answers, refusing.post(f"{nowhere}/cancel")]} == {404}


def test_the_webhook_of_a_spec_is_the_jobs_own(api: Api, http: httpx.Client) -> None:
    hook = {"url": "https://hooks.example.org/x", "secret": "whsec_" + "MDEy" * 10}
    batch = submitted(http, {"specs": [*specs(1), *specs(1, webhook=hook)]})
    deliveries = [http.get(f"/v1/jobs/{job_id}/deliveries") for job_id in batch["jobs"]]
    assert [answer.status_code for answer in deliveries] == [404, 200]
    assert deliveries[1].json()["state"] == "waiting"
