"""Submissions of accuracy studies."""

from typing import Any

import httpx
import pytest

from warpfold.app.jobs.views import JobView
from warpfold.contract.kinds.accuracy import AccuracySpec
from warpfold.contract.kinds.three_numbers import ThreeNumbersSpec
from warpfold.contract.needs import ANY, GPU_FIRST

STUDY: dict[str, Any] = {"kind": "accuracy", "sizes": [1000, 100000]}


def test_a_study_is_accepted_with_all_its_defaults(http: httpx.Client) -> None:
    answer = http.post("/v1/jobs", json=STUDY)
    assert answer.status_code == 202, answer.text
    assert isinstance(JobView.model_validate_json(answer.content).spec, AccuracySpec)
    assert answer.json()["spec"] == {
        **STUDY,
        "methods": None,
        "ops": ["sum"],
        "distributions": ["mixed", "pathological", "normal"],
        "dtypes": ["float32"],
        "parameters": {},
        "seed": 0,
        "permutations": 8,
        "runs": 3,
        "backend": "auto",
        "timeout_s": 300.0,
        "priority": "normal",
        "tags": {},
    }


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"dtypes": ["float32", "float16"]}, "distributions", "'mixed' cannot fill float16"),
        ({"dtypes": ["int32"]}, "dtypes.0", "float16"),
        ({"methods": ["bubble"]}, "methods.0", "unknown method 'bubble'"),
        ({"methods": ["tree", "tree"]}, "methods", "lists each value once"),
        ({"ops": ["max"]}, "ops.0", "prod"),
        ({"sizes": []}, "sizes", "at least one value"),
        ({"sizes": [0]}, "sizes.0", "greater than or equal to 1"),
        ({"sizes": list(range(1, 1000))}, "sizes", "the most is 4,096"),
        ({"permutations": 65}, "permutations", "less than or equal to 64"),
        ({"parameters": {"uniform": {"low": 0}}}, "parameters.uniform", "not among the distributions"),
        ({"parameters": {"normal": {"std": -1}}}, "parameters.normal.std", "std must be in"),
        ({"parameters": {"normal": {"width": 1}}}, "parameters.normal.width", "no parameter 'width'"),
        (
            {"distributions": ["arange"], "dtypes": ["float16"], "sizes": [10, 70000]},
            "sizes",
            "exceeds float16, whose largest is 65504",
        ),
        ({"speed": 1}, "speed", "There is no such field"),
    ],
)
def test_an_impossible_study_is_422_and_names_the_field(
    http: httpx.Client, change: dict[str, Any], field: str, message: str
) -> None:
    answer = http.post("/v1/jobs", json={**STUDY, **change})
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert message in error["message"]


def test_a_study_goes_to_a_gpu_first_if_a_method_wants_one() -> None:
    for methods, where in ((None, GPU_FIRST), (["numpy", "torch"], GPU_FIRST), (["numpy", "exact", "kahan"], ANY)):
        spec = AccuracySpec.model_validate({**STUDY, "methods": methods})
        assert spec.needs() == where
    assert AccuracySpec.model_validate({**STUDY, "backend": "cpu"}).needs() == "cpu"
    assert ThreeNumbersSpec(kind="three_numbers").needs() == ANY


def test_all_methods_of_a_slot_are_those_of_its_host_and_of_its_gpu() -> None:
    spec = AccuracySpec.model_validate(STUDY)
    host, gpu = spec.axes("cpu").methods, spec.axes("cuda").methods
    assert set(host) < set(gpu)
    assert {"tree", "numpy", "exact"} <= set(host)
    assert {"cuda_tree", "torch", "cupy", "single_pass"} <= set(gpu) - set(host)
