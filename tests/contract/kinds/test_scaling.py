"""Submissions of scaling studies."""

from typing import Any

import httpx
import pytest

from tests.support.api import RESULT, Api
from warpfold.app.jobs.views import JobView
from warpfold.contract.kinds.scaling import ScalingResult, ScalingSpec
from warpfold.contract.needs import GANG, GANG_FIRST
from warpfold.contract.tasks import task_spec

STUDY: dict[str, Any] = {"kind": "scaling", "sizes": [1000000], "messages": [8]}


def test_a_study_is_accepted_with_all_its_defaults(http: httpx.Client) -> None:
    answer = http.post("/v1/jobs", json=STUDY)
    assert answer.status_code == 202, answer.text
    spec = answer.json()["spec"]
    assert spec["ranks"] == [1, 2, 4, 8]
    assert spec["methods"] == ["exact", "float"]
    assert spec["modes"] == ["one_process", "process_per_rank"]
    assert spec["algorithms"] == ["ring", "tree"]
    assert (spec["dtype"], spec["distribution"], spec["samples"], spec["backend"]) == ("float32", "normal", 30, "auto")
    assert isinstance(JobView.model_validate_json(answer.content).spec, ScalingSpec)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sizes": [], "messages": []}, "sizes"),
        ({"sizes": [0]}, "sizes.0"),
        ({"sizes": [1000, 1000]}, "sizes"),
        ({"sizes": [4]}, "sizes"),
        ({"sizes_per_rank": [2**39]}, "sizes_per_rank"),
        ({"messages": [12]}, "messages.0"),
        ({"messages": [4]}, "messages.0"),
        ({"messages": [2**40]}, "messages.0"),
        ({"ranks": []}, "ranks"),
        ({"ranks": [0]}, "ranks.0"),
        ({"ranks": [128]}, "ranks.0"),
        ({"ranks": [2, 2]}, "ranks"),
        ({"ranks": ["2"]}, "ranks.0"),
        ({"methods": ["kahan"]}, "methods.0"),
        ({"modes": ["threads"]}, "modes.0"),
        ({"algorithms": ["nvls"]}, "algorithms.0"),
        ({"dtype": "int32"}, "dtype"),
        ({"dtype": "float8"}, "dtype"),
        ({"distribution": "cauchy"}, "distribution"),
        ({"samples": 2}, "samples"),
        ({"time_limit_s": 0}, "time_limit_s"),
        ({"backend": "gang"}, "backend"),
        ({"gpus": 2}, "gpus"),
    ],
)
def test_an_impossible_study_is_422_and_names_the_field(
    refusing: httpx.Client, changes: dict[str, Any], field: str
) -> None:
    answer = refusing.post("/v1/jobs", json={**STUDY, **changes})
    assert answer.status_code == 422
    assert field in [error["field"] for error in answer.json()["errors"]]


def test_a_distribution_that_overflows_the_dtype_is_422(refusing: httpx.Client) -> None:
    answer = refusing.post("/v1/jobs", json={**STUDY, "distribution": "mixed", "dtype": "float16"})
    assert answer.status_code == 422
    assert "float16" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("spec", "slots"),
    [
        (STUDY, GANG_FIRST),
        (STUDY | {"backend": "cuda"}, GANG),
        (STUDY | {"backend": "cpu"}, "cpu"),
    ],
)
def test_the_slots_that_can_run_it_follow_from_the_spec(spec: dict[str, Any], slots: str) -> None:
    assert task_spec.validate_python(spec).needs() == slots


def test_a_result_is_served_as_stored(api: Api, http: httpx.Client) -> None:
    point: dict[str, Any] = dict.fromkeys(ScalingResult.model_json_schema()["$defs"]["ScalingPoint"]["properties"])
    skipped = {
        "scaling": "strong",
        "method": "exact",
        "mode": "one_process",
        "algorithm": "ring",
        "ranks": 8,
        "n": 1000,
    }
    result = ScalingResult.model_validate(
        {
            "dtype": "float32",
            "distribution": "normal",
            "note": "no GPU took part",
            "devices": [RESULT["device"]],
            "available": 2,
            "points": [{**point, **skipped, "outcome": "skipped", "reason": "room for 2", "samples": 0, "times": []}],
            "messages": [],
            "measured": 0,
            "skipped": 1,
            "failed": 0,
            "suspect": 0,
            "backend": "cpu",
            "device": RESULT["device"],
            "timings": {"queued_ms": 1.0, "total_ms": 2.0},
            "provenance": RESULT["provenance"],
        }
    )
    answer = http.post("/v1/jobs", json=STUDY)
    api.finish(api.claim(answer.json()["id"]), result.model_dump(mode="json"))
    job = JobView.model_validate_json(http.get(answer.headers["Location"]).content)
    assert job.result == result
