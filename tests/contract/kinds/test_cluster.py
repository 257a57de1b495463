"""Submissions of puzzles, which are jobs of the kind `cluster`."""

from typing import Any

import httpx
import pytest

from warpfold.app.jobs.views import JobView
from warpfold.contract.kinds.cluster import ClusterSpec
from warpfold.contract.tasks import task_spec

PUZZLE: dict[str, Any] = {"kind": "cluster", "puzzle": "advanced"}


def test_a_puzzle_is_accepted_with_all_its_defaults(http: httpx.Client) -> None:
    answer = http.post("/v1/jobs", json=PUZZLE)
    assert answer.status_code == 202, answer.text
    spec = answer.json()["spec"]
    assert (spec["size"], spec["threads"], spec["cluster_size"]) == (1024, 256, 4)
    assert isinstance(JobView.model_validate_json(answer.content).spec, ClusterSpec)


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
        (PUZZLE, "any"),
        (PUZZLE | {"backend": "cuda"}, "cuda"),
    ],
)
def test_the_slots_that_can_run_it_follow_from_the_spec(spec: dict[str, Any], slots: str) -> None:
    assert task_spec.validate_python(spec).needs() == slots
