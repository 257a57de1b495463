"""A benchmark on several devices is one job on each of them."""

from typing import Any

import httpx
import pytest

from tests.support.api import Api
from warpfold.app.jobs import presets, turns, workers
from warpfold.app.jobs.allotment import Depth
from warpfold.app.jobs.workers import WorkerInfo

BOTH = {
    "kind": "benchmark",
    "strategies": ["exact", "numpy", "cub"],
    "sizes": [1000],
    "devices": ["cuda", "cpu"],
    "tags": {"course": "p05"},
}


def submitted(http: httpx.Client, **changes: Any) -> dict[str, Any]:
    response = http.post("/v1/jobs", json={**BOTH, **changes})
    assert response.status_code == 202, response.text
    body: dict[str, Any] = response.json()
    return body


def test_each_device_gets_the_strategies_that_it_knows(http: httpx.Client) -> None:
    job = submitted(http)
    assert (job["kind"], job["spec"]["devices"]) == ("benchmark", ["cuda", "cpu"])
    children = [http.get(f"/v1/jobs/{child['id']}").json() for child in job["children"]]
    assert [(child["name"], child["spec"]["backend"], child["spec"]["strategies"]) for child in children] == [
        ("cuda", "cuda", ["exact", "cub"]),
        ("cpu", "cpu", ["exact", "numpy"]),
    ]
    assert all(child["parent"] == job["id"] and child["tags"] == {"course": "p05"} for child in children)


def test_each_goes_to_its_own_slot_and_the_whole_to_none(api: Api, http: httpx.Client) -> None:
    job = submitted(http)
    for device, child in zip(("cuda", "cpu"), job["children"], strict=True):
        slot = WorkerInfo(f"here:{device}", device, device, "here", 1, "0", None)
        api.database.run(workers.report, slot, "idle", None, 60.0)
        [handed] = api.database.run(turns.hand_over_some, Depth(8)).messages
        assert (str(handed.job_id), handed.worker) == (child["id"], slot.id)


def test_it_is_cancelled_as_a_whole(http: httpx.Client) -> None:
    job = submitted(http)
    assert http.post(f"/v1/jobs/{job['id']}/cancel").json()["status"] == "cancelled"
    assert {http.get(f"/v1/jobs/{child['id']}").json()["status"] for child in job["children"]} == {"cancelled"}


def test_it_ends_with_its_parts(api: Api, http: httpx.Client) -> None:
    job = submitted(http)
    for child in job["children"]:
        api.finish(api.claim(child["id"]))
    api.database.run(presets.settle, api.database.run(presets.unsettled))
    ended = http.get(f"/v1/jobs/{job['id']}").json()
    assert ended["status"] == "succeeded"
    assert [part["job_id"] for part in ended["result"]["jobs"]] == [child["id"] for child in job["children"]]
    for path in (f"/v1/reports/{job['id']}", f"/v1/jobs/{job['id']}/result"):
        assert http.get(path).status_code == 200, path


def test_a_benchmark_on_one_device_has_no_parts(http: httpx.Client) -> None:
    one = {name: value for name, value in BOTH.items() if name != "devices"} | {"strategies": ["exact"]}
    assert http.post("/v1/jobs", json=one).json()["children"] is None


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"devices": ["cpu", "cpu"]}, "devices", "each value once"),
        ({"devices": ["cpu"]}, "devices", "at least 2"),
        ({"devices": ["cpu", "tpu"]}, "devices.1", "'cpu' or 'cuda'"),
        ({"backend": "cpu"}, "backend", "leave one of them out"),
        ({"strategies": ["numpy"]}, "devices", "none of the strategies runs on cuda"),
    ],
)
def test_devices_that_make_no_sense_are_refused(
    http: httpx.Client, changes: dict[str, Any], field: str, said: str
) -> None:
    response = http.post("/v1/jobs", json={**BOTH, **changes})
    assert response.status_code == 422
    error = response.json()["errors"][0]
    assert error["field"] == field
    assert said in error["message"]


def test_a_part_of_a_preset_has_no_parts_itself(http: httpx.Client) -> None:
    preset = {"kind": "preset", "preset": "p34-reduction", "children": [{"name": "both", "spec": BOTH}]}
    response = http.post("/v1/jobs", json=preset)
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "children.0.spec.devices"
