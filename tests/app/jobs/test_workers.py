"""The sentence of a job that waits because no slot takes it."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.support.api import THREE_VALUES, WORKER, Api
from warpfold.app.jobs import workers
from warpfold.app.jobs.workers import Obstacle, Place, fingerprint, waiting_for
from warpfold.contract.needs import ANY, GANG, GANG_FIRST, GPU_FIRST

CPU, GPU, ALL = (
    Place(f"gpu1:{slot}", backend, False, False)
    for slot, backend in (("cpu", "cpu"), ("cuda:0", "cuda"), ("gang", "gang"))
)
DRAINED = {place: replace(place, draining=True) for place in (CPU, GPU, ALL)}
STARTING = {place: replace(place, starting=True) for place in (CPU, GPU, ALL)}


@pytest.mark.parametrize(
    ("needs", "places", "reason"),
    [
        ("cpu", [CPU], None),
        ("cpu", [GPU, ALL], Obstacle.NO_SLOT),
        ("cpu", [DRAINED[CPU], GPU], Obstacle.SLOTS_DRAINED),
        ("cpu", [STARTING[CPU]], Obstacle.SLOTS_STARTING),
        ("cuda", [CPU], Obstacle.NO_SLOT),
        ("cuda", [DRAINED[GPU], STARTING[GPU]], Obstacle.SLOTS_STARTING),
        (GANG, [GPU, CPU], Obstacle.NO_SLOT),
        (ANY, [DRAINED[GPU], CPU], None),
        (ANY, [ALL], Obstacle.NO_SLOT),
        (ANY, [DRAINED[GPU], DRAINED[CPU]], Obstacle.SLOTS_DRAINED),
        (GPU_FIRST, [CPU], None),
        (GPU_FIRST, [STARTING[GPU], CPU], Obstacle.SLOTS_STARTING),
        (GPU_FIRST, [DRAINED[GPU], CPU], None),
        (GANG_FIRST, [], Obstacle.NO_SLOT),
        (GANG_FIRST, [DRAINED[ALL], DRAINED[CPU]], Obstacle.SLOTS_DRAINED),
        ("none", [], None),
    ],
)
def test_slots_that_take_nothing_are_told_by_what_ails_them(
    needs: str, places: list[Place], reason: Obstacle | None
) -> None:
    waiting = waiting_for(needs, places)
    assert (waiting and waiting.reason) == reason


def test_the_sentence_names_the_slots_or_how_to_start_one() -> None:
    drained, missing = waiting_for("cuda", [DRAINED[GPU]]), waiting_for("cuda", [CPU])
    assert drained is not None
    assert missing is not None
    assert "gpu1:cuda:0" in drained.detail
    assert missing.detail == "No live worker serves a GPU; `warpfold worker --slot cuda:0` starts one."


def test_another_state_of_any_slot_is_another_fingerprint() -> None:
    states = [[CPU], [DRAINED[CPU]], [STARTING[CPU]], [GPU], [CPU, GPU], []]
    assert len({fingerprint(state) for state in states}) == len(states)


def report(api: Api, state: str = "idle") -> None:
    api.database.run(workers.report, WORKER, state, None, 60.0)


def look(http: httpx.Client, job_id: str) -> tuple[dict[str, Any] | None, str]:
    answer = http.get(f"/v1/jobs/{job_id}")
    waiting: dict[str, Any] | None = answer.json()["waiting"]
    return waiting, answer.headers["ETag"]


def test_a_job_says_what_is_the_matter_with_its_slots_and_its_tag_changes(api: Api, http: httpx.Client) -> None:
    job = api.submit(backend="cpu")
    missing, first = look(http, job)
    assert missing is not None
    assert missing["reason"] == "no_slot"
    assert http.get(f"/v1/jobs/{job}", headers={"If-None-Match": first}).status_code == 304
    report(api)
    shown, second = look(http, job)
    assert shown is None
    api.database.run(workers.drain, WORKER.id)
    drained, third = look(http, job)
    assert drained is not None
    assert drained["reason"] == "slots_drained"
    assert len({first, second, third}) == 3
    api.database.run(workers.resume, WORKER.id)
    assert look(http, job) == (None, second)
    api.finish(api.claim(job))
    assert look(http, job)[0] is None


def test_lists_say_it_of_each_job(api: Api, http: httpx.Client) -> None:
    report(api)
    served, unserved = api.submit(backend="cpu"), api.submit(backend="cuda")
    listed = {item["id"]: item["waiting"] for item in http.get("/v1/jobs").json()["items"]}
    assert listed[served] is None
    assert listed[unserved]["reason"] == "no_slot"


def test_a_job_that_was_handed_to_a_slot_waits_for_nothing(api: Api, http: httpx.Client) -> None:
    report(api)
    job = api.submit(backend="cpu")
    api.claim(job)
    api.database.run(workers.drain, WORKER.id)
    assert look(http, job)[0] is None


def test_a_preset_says_which_of_its_jobs_waits(api: Api, http: httpx.Client) -> None:
    report(api)
    spec = {**THREE_VALUES, "backend": "cuda"}
    children = [{"name": "here", "spec": {**spec, "backend": "cpu"}}, {"name": "there", "spec": spec}]
    asked = {"kind": "preset", "preset": "p05-three-numbers", "children": children}
    job = http.post("/v1/jobs", json=asked).json()["id"]
    waiting, tag = look(http, job)
    assert waiting is not None
    assert waiting["detail"].startswith("Its job there waits: No live worker serves a GPU")
    assert http.get(f"/v1/jobs/{job}", headers={"If-None-Match": tag}).status_code == 304
