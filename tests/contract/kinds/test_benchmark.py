"""Submissions of benchmarks and puzzles."""

from typing import Any

import httpx
import pytest

from tests.support.api import RESULT, Api
from warpfold.app.jobs.views import JobView
from warpfold.contract.jobs import job_spec
from warpfold.contract.kinds.benchmark import BenchmarkResult, BenchmarkSpec
from warpfold.contract.kinds.cluster import ClusterSpec
from warpfold.contract.tasks import task_spec

BENCHMARK: dict[str, Any] = {"kind": "benchmark", "strategies": ["exact", "numpy"], "sizes": [1000, 1000000]}
PUZZLE: dict[str, Any] = {"kind": "cluster", "puzzle": "advanced"}


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


def test_a_puzzle_is_accepted_with_all_its_defaults(http: httpx.Client) -> None:
    answer = http.post("/v1/jobs", json=PUZZLE)
    assert answer.status_code == 202, answer.text
    spec = answer.json()["spec"]
    assert (spec["size"], spec["threads"], spec["cluster_size"]) == (1024, 256, 4)
    assert isinstance(JobView.model_validate_json(answer.content).spec, ClusterSpec)


@pytest.mark.parametrize("model", [BenchmarkSpec, ClusterSpec])
def test_the_documented_examples_are_specs(model: type[BenchmarkSpec | ClusterSpec]) -> None:
    for example in model.model_json_schema()["examples"]:
        assert isinstance(job_spec.validate_python(example), model)


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


def test_too_many_cases_are_counted_in_the_answer(refusing: httpx.Client) -> None:
    answer = refusing.post("/v1/jobs", json={**BENCHMARK, "sizes": list(range(1, 252))})
    assert "make 1,004 combinations; the most is 1,000" in answer.json()["detail"]


def test_a_distribution_that_cannot_fill_a_dtype_is_422(refusing: httpx.Client) -> None:
    spec = {**BENCHMARK, "dtypes": ["float32", "int8"], "distribution": "normal"}
    answer = refusing.post("/v1/jobs", json=spec)
    assert answer.status_code == 422
    assert "int8" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"puzzle": "jigsaw"}, "puzzle"),
        ({"threads": 100}, "threads"),
        ({"cluster_size": 9}, "cluster_size"),
        ({"size": 1025}, "size"),
        ({"size": "1024"}, "size"),
        ({"tpb": 256}, "tpb"),
    ],
)
def test_an_impossible_puzzle_is_422_and_names_the_field(
    refusing: httpx.Client, changes: dict[str, Any], field: str
) -> None:
    answer = refusing.post("/v1/jobs", json={**PUZZLE, **changes})
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


@pytest.mark.parametrize(
    ("spec", "slots"),
    [
        (BENCHMARK | {"strategies": ["exact"]}, "any"),
        (BENCHMARK, "cpu"),
        (BENCHMARK | {"strategies": ["single_pass", "cub"]}, "cuda"),
        (BENCHMARK | {"strategies": ["exact", "torch"]}, "cuda"),
        (BENCHMARK | {"strategies": ["exact"], "backend": "cuda"}, "cuda"),
        (PUZZLE, "any"),
        (PUZZLE | {"backend": "cuda"}, "cuda"),
    ],
)
def test_the_slots_that_can_run_it_follow_from_the_spec(spec: dict[str, Any], slots: str) -> None:
    assert task_spec.validate_python(spec).needs() == slots


def test_results_of_all_kinds_are_served_as_stored(api: Api, http: httpx.Client) -> None:
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
