"""Submissions of benchmarks; one on several devices is one job on each of them."""

from typing import Any

import httpx
import pytest

from tests.support.api import RESULT, Api
from warpfold.app.jobs import presets, turns, workers
from warpfold.app.jobs.dispatch_state import Depth
from warpfold.app.jobs.views import JobView
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.contract.kinds.benchmark import BenchmarkResult, BenchmarkSpec
from warpfold.contract.kinds.spec import Changes
from warpfold.contract.tasks import task_spec
from warpfold.kernels.studies.shapes import CaseShape

BENCHMARK: dict[str, Any] = {"kind": "benchmark", "strategies": ["exact", "numpy"], "sizes": [1000, 1000000]}


def test_a_benchmark_is_accepted_with_all_its_defaults(http: httpx.Client) -> None:
    answer = http.post("/v1/jobs", json=BENCHMARK)
    assert answer.status_code == 202, answer.text
    job = JobView.model_validate_json(answer.content)
    assert job.kind == "benchmark"
    assert isinstance(job.spec, BenchmarkSpec)
    assert len(job.spec.axes()) == 2 * 2 * 2
    assert answer.json()["spec"] == {
        **BENCHMARK,
        "ops": ["sum"],
        "dtypes": ["float32"],
        **dict.fromkeys(("rows", "columns", "axis", "segments", "groups", "key_order")),
        "caches": ["cold", "hot"],
        "backend": "auto",
        "devices": None,
        "distribution": None,
        "parameters": {},
        "seed": 0,
        "target_rse": 0.005,
        "min_samples": 20,
        "max_samples": 10000,
        "time_limit_s": 5.0,
        "timeout_s": 300.0,
        "priority": "normal",
        "tags": {},
    }


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"strategies": ["exact", "magic"]}, "strategies.1"),
        ({"strategies": ["auto"]}, "strategies.0"),
        ({"ops": ["sum", "dot"]}, "ops.1"),
        ({"strategies": []}, "strategies"),
        ({"strategies": ["exact", "exact"]}, "strategies"),
        ({"strategies": ["numpy", "single_pass"]}, "strategies"),
        ({"strategies": "exact"}, "strategies"),
        ({"ops": ["sum", "total"]}, "ops.1"),
        ({"dtypes": ["float128"]}, "dtypes.0"),
        ({"sizes": [0]}, "sizes.0"),
        ({"sizes": [10, -1]}, "sizes.1"),
        ({"sizes": [2**41]}, "sizes.0"),
        ({"sizes": [1.5]}, "sizes.0"),
        ({"sizes": list(range(1, 252))}, "sizes"),
        ({"sizes": list(range(1, 1002))}, "sizes"),
        ({"caches": ["warm"]}, "caches.0"),
        ({"backend": "tpu"}, "backend"),
        ({"backend": "cuda"}, "backend"),
        ({"distribution": "cauchy"}, "distribution"),
        ({"parameters": {"low": 1}}, "parameters"),
        ({"target_rse": 0}, "target_rse"),
        ({"target_rse": 1}, "target_rse"),
        ({"min_samples": 1}, "min_samples"),
        ({"min_samples": 50, "max_samples": 40}, "max_samples"),
        ({"time_limit_s": 0}, "time_limit_s"),
        ({"time_limit_s": -1}, "time_limit_s"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"op": "sum"}, "op"),
        ({"source": {}}, "source"),
    ],
)
def test_an_impossible_benchmark_is_422_and_names_the_field(
    refusing: httpx.Client, changes: dict[str, Any], field: str
) -> None:
    answer = refusing.post("/v1/jobs", json={**BENCHMARK, **changes})
    assert answer.status_code == 422
    assert field in [error["field"] for error in answer.json()["errors"]]


MATRICES: dict[str, Any] = {"kind": "benchmark", "strategies": ["exact", "numpy"], "rows": [10, 20], "columns": [3, 4]}
TABLES: dict[str, Any] = {"kind": "benchmark", "strategies": ["exact", "polars"], "rows": [1000], "groups": [10, 100]}


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        (MATRICES, [CaseShape.matrix(rows, columns, 1) for rows in (10, 20) for columns in (3, 4)]),
        (
            {**MATRICES, "rows": [10], "columns": [3], "axis": [0, 1]},
            [CaseShape.matrix(10, 3, axis) for axis in (0, 1)],
        ),
        (TABLES, [CaseShape.table(1000, groups, "random") for groups in (10, 100)]),
        (
            {**TABLES, "groups": [10], "key_order": ["sorted", "random"]},
            [CaseShape.table(1000, 10, keys) for keys in ("sorted", "random")],
        ),
        ({**BENCHMARK, "sizes": [100], "segments": [4, 8]}, [CaseShape.cut(100, mean) for mean in (4, 8)]),
        (BENCHMARK, [1000, 1_000_000]),
    ],
)
def test_shapes_are_the_product_of_their_lists(spec: dict[str, Any], shapes: list[CaseShape | int]) -> None:
    read = task_spec.validate_python(spec)
    assert isinstance(read, BenchmarkSpec)
    assert list(read.shapes()) == shapes
    assert len(read.axes()) == len(shapes) * 2 * 2
    assert task_spec.validate_json(read.model_dump_json()) == read


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({"kind": "benchmark", "strategies": ["exact"]}, "sizes", "name the sizes of arrays, or `rows`"),
        ({**MATRICES, "sizes": [10]}, "sizes", "leave `sizes` out"),
        ({**MATRICES, "columns": None}, "rows", "rows need either `columns` or `groups`"),
        ({**MATRICES, "groups": [5]}, "rows", "rows need either"),
        ({**MATRICES, "segments": [5]}, "segments", "leave `rows` out"),
        ({**BENCHMARK, "columns": [5]}, "columns", "`columns` needs `rows`"),
        ({**BENCHMARK, "groups": [5]}, "groups", "`groups` needs `rows`"),
        ({**TABLES, "axis": [1]}, "axis", "`axis` needs `columns`"),
        ({**MATRICES, "key_order": ["random"]}, "key_order", "`key_order` needs `groups`"),
        ({**MATRICES, "axis": [2]}, "axis.0", "less than or equal to 1"),
        ({**TABLES, "key_order": ["shuffled"]}, "key_order.0", "'random' or 'sorted'"),
        ({**MATRICES, "rows": []}, "rows", "at least one value"),
        ({**MATRICES, "columns": [3, 3]}, "columns", "each value once"),
        ({**MATRICES, "rows": [0]}, "rows.0", "greater than or equal to 1"),
        ({**MATRICES, "rows": [1 << 21], "columns": [1 << 20]}, "columns", "the largest matrix has more than"),
        ({**TABLES, "groups": [1 << 31]}, "groups", "a table has at most 2,147,483,647 groups"),
        ({**MATRICES, "strategies": ["exact", "polars"]}, "strategies.1", "polars is not measured by axis"),
        ({**TABLES, "strategies": ["thrust"]}, "strategies.0", "thrust is not measured by keys"),
        ({**BENCHMARK, "strategies": ["pyarrow"]}, "strategies.0", "pyarrow is not measured of whole arrays"),
        ({**TABLES, "strategies": ["polars", "torch"]}, "strategies", "no device knows all of these strategies"),
        ({**MATRICES, "rows": list(range(1, 502))}, "rows", "combinations; the most is 1,000"),
    ],
)
def test_shapes_that_make_no_sense_are_422_and_name_the_field(
    refusing: httpx.Client, spec: dict[str, Any], field: str, reason: str
) -> None:
    answer = refusing.post("/v1/jobs", json=spec)
    assert answer.status_code == 422, answer.text
    [error] = [error for error in answer.json()["errors"] if error["field"] == field]
    assert reason in error["message"] + answer.json()["detail"]


@pytest.mark.parametrize(
    ("spec", "max_n", "kept"),
    [
        (MATRICES, 60, {"rows": (10,), "columns": (3, 4)}),
        (MATRICES, 30, {"rows": (7,), "columns": (3, 4)}),
        (MATRICES, 2, {"rows": (1,), "columns": (2,)}),
        (TABLES, 50, {"rows": (50,)}),
    ],
)
def test_a_preset_that_bounds_arrays_bounds_shapes(spec: dict[str, Any], max_n: int, kept: dict[str, Any]) -> None:
    read = task_spec.validate_python(spec)
    assert isinstance(read, BenchmarkSpec)
    assert read.shortened(max_n) == kept
    shorter = read.changed(Changes(max_n=max_n))
    assert max(shorter.axes().counts()) <= max_n


def test_a_sweep_of_shapes_is_one_line_in_lists() -> None:
    assert task_spec.validate_python(MATRICES).description() == "benchmark: sum · float32 · 10–20 × 3–4 · exact, numpy"


def test_each_device_gets_the_strategies_that_know_its_shapes() -> None:
    spec = {**TABLES, "strategies": ["exact", "polars", "torch"], "devices": ["cuda", "cpu"]}
    parts = task_spec.validate_python(spec).parts()
    assert [(name, part.strategies) for name, part in parts if isinstance(part, BenchmarkSpec)] == [
        ("cuda", ("exact", "torch")),
        ("cpu", ("exact", "polars")),
    ]


def test_too_many_cases_are_counted_in_the_answer(refusing: httpx.Client) -> None:
    answer = refusing.post("/v1/jobs", json={**BENCHMARK, "sizes": list(range(1, 252))})
    assert "make 1,004 combinations; the most is 1,000" in answer.json()["detail"]


def test_a_distribution_that_cannot_fill_a_dtype_is_422(refusing: httpx.Client) -> None:
    spec = {**BENCHMARK, "dtypes": ["float32", "int8"], "distribution": "normal"}
    answer = refusing.post("/v1/jobs", json=spec)
    assert answer.status_code == 422
    assert "int8" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("spec", "slots"),
    [
        (BENCHMARK | {"strategies": ["exact"]}, "any"),
        (BENCHMARK, "cpu"),
        (BENCHMARK | {"strategies": ["single_pass", "cub"]}, "cuda"),
        (BENCHMARK | {"strategies": ["exact", "torch"]}, "cuda"),
        (BENCHMARK | {"strategies": ["exact"], "backend": "cuda"}, "cuda"),
    ],
)
def test_the_slots_that_can_run_it_follow_from_the_spec(spec: dict[str, Any], slots: str) -> None:
    assert task_spec.validate_python(spec).needs() == slots


def test_a_result_is_served_as_stored(api: Api, http: httpx.Client) -> None:
    result = BenchmarkResult(
        cases=8,
        measured=6,
        skipped=1,
        failed=1,
        suspect=0,
        ceiling_gbps=30.5,
        peak_gbps=None,
        backend="cpu",
        device=RESULT["device"],
        timings={"queued_ms": 1.0, "total_ms": 2.0},
        provenance=RESULT["provenance"],
    )
    answer = http.post("/v1/jobs", json=BENCHMARK)
    api.finish(api.claim(answer.json()["id"]), result.model_dump(mode="json"))
    job = JobView.model_validate_json(http.get(answer.headers["Location"]).content)
    assert job.result == result
    assert http.get(f"{answer.headers['Location']}/result").json() == result.model_dump(mode="json")
    report = http.get(f"/v1/reports/{job.id}", headers={"Accept": "text/markdown"})
    assert report.status_code == 200
    assert "| measured | 6 |" in report.text
    assert http.get(f"/v1/reports/{job.id}").json()["comparison"] is None


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


def test_each_of_several_devices_gets_the_strategies_that_it_knows(http: httpx.Client) -> None:
    job = submitted(http)
    assert (job["kind"], job["spec"]["devices"]) == ("benchmark", ["cuda", "cpu"])
    children = [http.get(f"/v1/jobs/{child['id']}").json() for child in job["children"]]
    assert [(child["name"], child["spec"]["backend"], child["spec"]["strategies"]) for child in children] == [
        ("cuda", "cuda", ["exact", "cub"]),
        ("cpu", "cpu", ["exact", "numpy"]),
    ]
    assert all(child["parent"] == job["id"] and child["tags"] == {"course": "p05"} for child in children)


def test_the_job_of_each_device_goes_to_its_own_slot_and_the_whole_to_none(api: Api, http: httpx.Client) -> None:
    job = submitted(http)
    for device, child in zip(("cuda", "cpu"), job["children"], strict=True):
        slot = WorkerInfo(f"here:{device}", device, device, "here", 1, "0", None)
        api.database.run(workers.report, slot, "idle", None, 60.0)
        [handed] = api.database.run(turns.hand_over_some, Depth(8)).messages
        assert (str(handed.job_id), handed.worker) == (child["id"], slot.id)


def test_a_benchmark_on_several_devices_is_cancelled_as_a_whole(http: httpx.Client) -> None:
    job = submitted(http)
    assert http.post(f"/v1/jobs/{job['id']}/cancel").json()["status"] == "cancelled"
    assert {http.get(f"/v1/jobs/{child['id']}").json()["status"] for child in job["children"]} == {"cancelled"}


def test_a_benchmark_on_several_devices_ends_with_its_jobs(api: Api, http: httpx.Client) -> None:
    job = submitted(http)
    for child in job["children"]:
        api.finish(api.claim(child["id"]))
    api.database.run(presets.settle, api.database.run(presets.unsettled))
    ended = http.get(f"/v1/jobs/{job['id']}").json()
    assert ended["status"] == "succeeded"
    assert [part["job_id"] for part in ended["result"]["jobs"]] == [child["id"] for child in job["children"]]
    for path in (f"/v1/reports/{job['id']}", f"/v1/jobs/{job['id']}/result"):
        assert http.get(path).status_code == 200, path


def test_a_benchmark_on_one_device_is_one_job(http: httpx.Client) -> None:
    alone = {name: value for name, value in BOTH.items() if name != "devices"} | {"strategies": ["exact"]}
    assert http.post("/v1/jobs", json=alone).json()["children"] is None


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"devices": ["cpu", "cpu"]}, "devices", "each value once"),
        ({"devices": ["cpu"]}, "devices", "at least 2"),
        ({"devices": ["cpu", "tpu"]}, "devices.1", "'cpu' or 'cuda'"),
        ({"backend": "cpu"}, "backend", "leave one of them out"),
        ({"strategies": ["numpy"]}, "devices", "none of the strategies runs on cuda"),
    ],
)
def test_devices_that_make_no_sense_are_422_and_named(
    http: httpx.Client, changes: dict[str, Any], field: str, message: str
) -> None:
    response = http.post("/v1/jobs", json={**BOTH, **changes})
    assert response.status_code == 422
    error = response.json()["errors"][0]
    assert error["field"] == field
    assert message in error["message"]


def test_a_benchmark_in_a_preset_has_one_device(http: httpx.Client) -> None:
    preset = {"kind": "preset", "preset": "p34-reduction", "children": [{"name": "both", "spec": BOTH}]}
    response = http.post("/v1/jobs", json=preset)
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "children.0.spec.devices"
