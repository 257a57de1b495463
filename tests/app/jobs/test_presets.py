"""A preset is one job that consists of others."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.support.api import RESULT, THREE_VALUES, WORKER, Api
from warpfold.app.jobs import leases, presets, queue, transitions, turns, workers
from warpfold.app.jobs.dispatch_state import Depth
from warpfold.app.jobs.views import JobView
from warpfold.contract.states import Reason

TWO = {
    "kind": "preset",
    "preset": "p34-reduction",
    "children": [{"name": "first", "spec": dict(THREE_VALUES)}, {"name": "second", "spec": dict(THREE_VALUES)}],
}


def submit(http: httpx.Client, **changes: Any) -> dict[str, Any]:
    response = http.post("/v1/jobs", json={**TWO, **changes})
    assert response.status_code == 202, response.text
    body: dict[str, Any] = response.json()
    return body


def settle(api: Api) -> None:
    """What the dispatcher does whenever something ends, and twice a second."""
    api.database.run(presets.settle, api.database.run(presets.unsettled))


def look(http: httpx.Client, job: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = http.get(f"/v1/jobs/{job['id']}").json()
    return shown


def ids(job: dict[str, Any]) -> list[str]:
    return [child["id"] for child in job["children"]]


def test_a_preset_and_its_children_are_accepted_together(http: httpx.Client) -> None:
    job = submit(http, tags={"course": "p05"}, priority="high")
    assert [(child["name"], child["kind"], child["status"]) for child in job["children"]] == [
        ("first", "reduce", "queued"),
        ("second", "reduce", "queued"),
    ]
    child = http.get(f"/v1/jobs/{ids(job)[0]}").json()
    assert (child["parent"], child["name"], child["children"]) == (job["id"], "first", None)
    assert (child["tags"], child["priority"], child["owner"]) == ({"course": "p05"}, "high", "ann")


def test_lists_show_the_children_of_one_preset_or_no_children_at_all(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    alone = api.submit()
    children = http.get("/v1/jobs", params={"parent": job["id"]}).json()["items"]
    assert sorted(child["id"] for child in children) == sorted(ids(job))
    others = http.get("/v1/jobs", params={"parent": "none"}).json()["items"]
    assert [item["id"] for item in others] == [alone, job["id"]]


def test_lists_name_given_jobs_and_the_preset_itself_shows_them(http: httpx.Client) -> None:
    job = submit(http)
    listed = http.get("/v1/jobs", params={"kind": "preset"}).json()["items"][0]
    assert listed["spec"]["children"] == [{"name": name, "kind": "reduce"} for name in ("first", "second")]
    assert JobView.model_validate(listed).children is None
    assert look(http, job)["spec"]["children"][0]["spec"]["source"]["values"] == [1e8, 1, -1e8]


def test_no_slot_ever_gets_the_preset_itself(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    api.database.run(workers.report, WORKER, "idle", None, 60.0)
    handed = api.database.run(turns.hand_over_some, Depth(8)).messages
    assert [str(message.job_id) for message in handed] == ids(job)
    assert api.database.run(leases.claim, UUID(job["id"]), 1, "gpu1:cpu", 60.0) is None


def test_its_status_and_progress_are_those_of_its_children(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    assert (job["status"], job["queue_position"]) == ("queued", None)
    first, second = ids(job)
    lease = api.claim(first)
    settle(api)
    running = look(http, job)
    assert (running["status"], running["progress"]) == ("running", {"done": 0, "total": 2, "unit": "jobs"})
    api.finish(lease)
    settle(api)
    assert look(http, job)["progress"]["done"] == 1
    api.finish(api.claim(second))
    settle(api)
    ended = look(http, job)
    assert (ended["status"], ended["progress"]["done"]) == ("succeeded", 2)
    assert [part["job_id"] for part in ended["result"]["jobs"]] == [first, second]
    assert ended["started_at"] == http.get(f"/v1/jobs/{first}").json()["started_at"]
    assert http.get(f"/v1/jobs/{job['id']}/result").json() == ended["result"]


def test_it_fails_if_a_child_does_and_names_it(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    first, second = ids(job)
    api.database.run(leases.fail, api.claim(first), Reason.TIMEOUT, "It took too long.")
    settle(api)
    assert look(http, job)["status"] == "running"  # the other one still has its turn
    api.finish(api.claim(second))
    settle(api)
    ended = look(http, job)
    assert (ended["status"], ended["reason"]) == ("failed", "children_failed")
    assert ended["error"] == "1 of 2 jobs failed: first (timeout: It took too long)."


def test_it_does_without_what_nothing_here_can_run_and_says_why(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    first, second = ids(job)
    api.database.run(leases.fail, api.claim(first), Reason.UNAVAILABLE, "No worker with a GPU serves this queue.")
    api.finish(api.claim(second))
    settle(api)
    ended = look(http, job)
    assert (ended["status"], ended["reason"]) == ("succeeded", None)
    assert [child["job_id"] for child in ended["result"]["jobs"]] == [second]
    (skipped,) = ended["result"]["skipped"]
    assert (skipped["name"], skipped["why"]) == ("first", "No worker with a GPU serves this queue.")
    assert [(child["status"], child["reason"]) for child in ended["children"]] == [
        ("failed", "unavailable"),
        ("succeeded", None),
    ]


def test_it_fails_if_nothing_of_it_can_run_here(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    for child in ids(job):
        api.database.run(leases.fail, api.claim(child), Reason.UNAVAILABLE, "No worker with a GPU serves this queue.")
    settle(api)
    ended = look(http, job)
    assert (ended["status"], ended["reason"]) == ("failed", "unavailable")
    cause = "unavailable: No worker with a GPU serves this queue"
    assert ended["error"] == f"2 of 2 jobs failed: first, second ({cause})."


def test_what_fails_otherwise_is_not_forgiven_for_what_is_skipped(api: Api, http: httpx.Client) -> None:
    job = submit(http, children=[{"name": name, "spec": dict(THREE_VALUES)} for name in ("a", "b", "c")])
    first, second, third = ids(job)
    api.database.run(leases.fail, api.claim(first), Reason.UNAVAILABLE, "No worker.")
    api.database.run(leases.fail, api.claim(second), Reason.TIMEOUT, "Too long.")
    api.finish(api.claim(third))
    settle(api)
    ended = look(http, job)
    assert (ended["status"], ended["reason"]) == ("failed", "children_failed")
    assert ended["error"] == "2 of 3 jobs failed: a (unavailable: No worker); b (timeout: Too long)."


def test_its_jobs_do_not_wait_for_a_slot_that_was_not_there_for_long(api: Api, http: httpx.Client) -> None:
    spec = {**THREE_VALUES, "backend": "cuda"}
    job = submit(http, children=[{"name": "gpu", "spec": spec}, {"name": "cpu", "spec": dict(THREE_VALUES)}])
    alone = api.submit(backend="cuda")
    (failed,) = api.database.run(queue.fail_unservable, ["cuda"], 60.0)
    assert str(failed) == ids(job)[0]
    assert http.get(f"/v1/jobs/{alone}").json()["status"] == "queued"  # whose user asked for a GPU gets a minute
    api.finish(api.claim(ids(job)[1]))
    settle(api)
    assert look(http, job)["status"] == "succeeded"


def test_a_preset_whose_children_all_ended_between_two_looks_still_passes_through_running(
    api: Api, http: httpx.Client
) -> None:
    job = submit(http)
    for child in ids(job):
        api.finish(api.claim(child))
    settle(api)
    settle(api)
    events = http.get(f"/v1/jobs/{job['id']}/events").text
    assert [line for line in events.splitlines() if line.startswith("event:")] == [
        "event: submitted",
        "event: started",
        "event: succeeded",
    ]


def test_looking_twice_or_late_changes_nothing(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    for child in ids(job):
        api.finish(api.claim(child))
    late = api.database.run(presets.unsettled)
    settle(api)
    ended = look(http, job)
    api.database.run(presets.settle, late)  # of a dispatcher that was slow to hear that it leads no more
    assert look(http, job) == ended


def test_cancelling_it_cancels_what_waits_and_asks_what_runs_to_end(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    first, _ = ids(job)
    lease = api.claim(first)
    assert http.post(f"/v1/jobs/{job['id']}/cancel").status_code == 202
    assert [child["status"] for child in look(http, job)["children"]] == ["running", "cancelled"]
    assert look(http, job)["cancel_requested"]
    assert api.database.run(leases.renew, [lease], 60.0)[lease.job_id]
    api.database.run(leases.cancelled, lease)
    settle(api)
    assert look(http, job)["status"] == "cancelled"
    assert http.post(f"/v1/jobs/{job['id']}/cancel").status_code == 202  # again is fine


def test_before_anything_ran_cancelling_ends_it_at_once(http: httpx.Client) -> None:
    job = submit(http)
    response = http.post(f"/v1/jobs/{job['id']}/cancel")
    assert (response.status_code, response.json()["status"]) == (202, "cancelled")
    assert {child["status"] for child in response.json()["children"]} == {"cancelled"}


def test_a_cancelled_child_leaves_the_rest_alone(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    first, second = ids(job)
    http.post(f"/v1/jobs/{first}/cancel")
    api.finish(api.claim(second))
    settle(api)
    assert look(http, job)["status"] == "cancelled"


def test_only_the_owner_may_cancel_it(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    assert api.client("bob").post(f"/v1/jobs/{job['id']}/cancel").status_code == 403
    assert {child["status"] for child in look(http, job)["children"]} == {"queued"}


def test_the_same_key_never_makes_a_second_family(http: httpx.Client) -> None:
    first, second = (http.post("/v1/jobs", json=TWO, headers={"Idempotency-Key": "family"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json() == second.json()
    assert len(http.get("/v1/jobs").json()["items"]) == 3


def test_it_takes_a_place_in_the_queue_for_each_child_and_none_for_itself(own_api: Api) -> None:
    http = own_api.client()
    own_api.client("root").put("/v1/quotas/ann", json={"running": None, "queued": 3, "gpu_seconds_per_day": None})
    submit(http)
    refused = http.post("/v1/jobs", json=TWO)
    assert (refused.status_code, refused.json()["quota"]) == (429, "queued")
    assert len(http.get("/v1/jobs").json()["items"]) == 3  # nothing of it was kept
    own_api.submit()


def test_its_tag_changes_with_each_child(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    before = http.get(f"/v1/jobs/{job['id']}").headers["ETag"]
    api.claim(ids(job)[0])
    after = http.get(f"/v1/jobs/{job['id']}", headers={"If-None-Match": before})
    assert after.status_code == 200
    assert after.json()["children"][0]["status"] == "running"


def test_a_family_is_removed_together_when_the_time_of_the_preset_is_over(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    first, second = ids(job)
    api.finish(api.claim(first))
    settle(api)
    assert api.database.run(transitions.remove_old, timedelta(0)) == 0  # a part of what still runs
    api.finish(api.claim(second))
    settle(api)
    assert api.database.run(transitions.remove_old, timedelta(0)) == 1
    assert http.get("/v1/jobs").json()["items"] == []


def test_a_preset_that_nobody_can_serve_fails_by_its_children(api: Api, http: httpx.Client) -> None:
    spec = {**THREE_VALUES, "backend": "cuda"}
    job = submit(http, children=[{"name": "gpu", "spec": spec}])
    assert [str(job_id) for job_id in api.database.run(queue.fail_unservable, ["cuda"], 0.0)] == ids(job)
    settle(api)
    error = "1 of 1 jobs failed: gpu (unavailable: No worker with a GPU serves this queue)."
    assert look(http, job)["error"] == error


BENCHMARK = {"strategies": ["exact"], "sizes": [10], "devices": ["cpu", "cuda"]}


def child(**changes: Any) -> dict[str, Any]:
    return {"children": [{"name": "x", "spec": {**THREE_VALUES, **changes}}]}


def tags(prefix: str, count: int) -> dict[str, str]:
    return {f"{prefix}{number}": "" for number in range(count)}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"preset": "p99"}, "preset"),
        ({"children": [TWO["children"][0]] * 2}, "children"),
        ({"children": []}, "children"),
        ({"children": [{"name": "x", "spec": {"kind": "preset", "preset": "p34"}}]}, "children.0.spec.kind"),
        (child(op="max2"), "children.0.spec.op"),
        (child(backend="tpu"), "children.0.spec.backend"),
        (child(webhook={"url": "https://example.org/"}), "children.0.spec.webhook"),
        (child(source={"type": "values", "values": ["q"]}), "children.0.spec.source.values.0"),
        (child(op="dot", other={"type": "values", "values": ["q"]}), "children.0.spec.other.values.0"),
        (child(source={"type": "path", "path": "/etc/x.npy"}), "children.0.spec.source.path"),
        (child(source={"type": "values", "values": [1] * 100_001}), "children.0.spec.source.values"),
        ({"children": [{"name": str(n), "spec": THREE_VALUES} for n in range(201)]}, "children"),
        ({"children": [{}] * 1000}, "children.0.name"),
        (
            {"children": [{"name": "x", "spec": {"kind": "benchmark", **BENCHMARK}}]},
            "children.0.spec.devices",
        ),
        ({**child(tags=tags("a", 20)), "tags": tags("b", 13)}, "tags"),
        ({"max_n": 0}, "max_n"),
        ({"backend": "cpu", **child(backend="cuda")}, "backend"),
    ],
)
def test_what_cannot_be_is_named(refusing: httpx.Client, changes: dict[str, Any], field: str) -> None:
    response = refusing.post("/v1/jobs", json={**TWO, **changes})
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == field
    assert refusing.get("/v1/jobs").json()["items"] == []


def test_the_finished_result_is_read_as_it_was_stored(api: Api, http: httpx.Client) -> None:
    job = submit(http)
    for child in ids(job):
        api.finish(api.claim(child), RESULT)
    settle(api)
    result = look(http, job)["result"]
    assert result["total_ms"] >= 0 <= result["queued_ms"]
