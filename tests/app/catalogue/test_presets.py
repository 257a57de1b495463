import httpx

from warpfold.contract.presets import catalogue
from warpfold.contract.tasks import task_spec


def test_presets_and_groups_are_listed(refusing: httpx.Client) -> None:
    body = refusing.get("/v1/presets").json()
    assert [item["name"] for item in body["items"]] == list(catalogue.names())
    assert all(item["title"] and item["description"] and item["jobs"] for item in body["items"])
    assert body["groups"]["p05-task1"] == ["p05-task1-correctness", "p05-task1-throughput"]


def test_a_preset_can_be_read_copied_changed_and_submitted(http: httpx.Client) -> None:
    shown = http.get("/v1/presets/p34-advanced").json()
    children = shown["children"]
    children[0]["spec"]["cluster_size"] = 2
    children[0]["spec"]["size"] = 512
    job = http.post("/v1/jobs", json={"kind": "preset", "preset": shown["name"], "children": children}).json()
    child = http.get(f"/v1/jobs/{job['children'][0]['id']}").json()
    assert (child["spec"]["cluster_size"], child["spec"]["size"]) == (2, 512)


def test_the_published_figures_stand_beside_the_jobs(refusing: httpx.Client) -> None:
    shown = refusing.get("/v1/presets/p05-task3-normal").json()
    assert shown["published"]["task3_abs_error.normal"]["sequential"][0] == 5.72e-06
    assert "Fernandes" in shown["source"]
    assert [task_spec.validate_python(child["spec"]).kind for child in shown["children"]] == ["accuracy", "accuracy"]


def test_an_unknown_preset_is_not_found(refusing: httpx.Client) -> None:
    assert refusing.get("/v1/presets/p99").status_code == 404
    assert refusing.get("/v1/presets/p05").status_code == 404  # a group is no preset
