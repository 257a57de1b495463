"""Submissions of kernel profiles."""

from typing import Any

import httpx
import pytest

from warpfold.contract.needs import GPU_FIRST
from warpfold.contract.tasks import task_spec

PROFILE: dict[str, Any] = {"kind": "profile", "strategies": ["exact", "single_pass"], "sizes": [1000]}


def test_a_profile_is_accepted_with_all_its_defaults(http: httpx.Client) -> None:
    answer = http.post("/v1/jobs", json=PROFILE)
    assert answer.status_code == 202, answer.text
    spec = answer.json()["spec"]
    assert (spec["ops"], spec["dtypes"], spec["arch"], spec["counters"]) == (["sum"], ["float32"], "sm_90", True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"strategies": []}, "strategies"),
        ({"strategies": ["auto"]}, "strategies"),
        ({"strategies": ["numpy"]}, "strategies"),
        ({"strategies": ["exact", "exact"]}, "strategies"),
        ({"sizes": []}, "sizes"),
        ({"arch": "sm_52"}, "arch"),
        ({"counters": "maybe"}, "counters"),
    ],
)
def test_an_impossible_profile_is_422_and_names_the_field(
    refusing: httpx.Client, changes: dict[str, Any], field: str
) -> None:
    answer = refusing.post("/v1/jobs", json={**PROFILE, **changes})
    assert answer.status_code == 422
    assert field in [error["field"] for error in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("spec", "slots"),
    [
        (PROFILE, GPU_FIRST),
        (PROFILE | {"backend": "cuda"}, "cuda"),
        (PROFILE | {"backend": "cpu"}, "cpu"),
    ],
)
def test_the_slots_that_can_run_it_follow_from_the_spec(spec: dict[str, Any], slots: str) -> None:
    assert task_spec.validate_python(spec).needs() == slots
