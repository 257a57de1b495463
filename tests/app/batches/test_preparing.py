"""A sweep is one spec and lists of values."""

from typing import Any

import httpx
import pytest

from tests.support.batches import submitted

SPEC: dict[str, Any] = {"kind": "reduce", "source": {"type": "generate", "distribution": "normal", "n": 1000}}


def test_a_sweep_is_a_job_for_each_combination_the_last_field_fastest(http: httpx.Client) -> None:
    batch = submitted(http, {"sweep": {"spec": SPEC, "over": {"source.seed": [3, 1], "op": ["sum", "max", "min"]}}})
    assert batch["count"] == 6
    jobs = [http.get(f"/v1/jobs/{job_id}").json()["spec"] for job_id in batch["jobs"]]
    assert [(job["source"]["seed"], job["op"]) for job in jobs] == [
        *((3, "sum"), (3, "max"), (3, "min"), (1, "sum"), (1, "max"), (1, "min"))
    ]
    assert {job["source"]["n"] for job in jobs} == {1000}


def test_a_sweep_takes_what_holds_for_all_and_makes_objects_that_are_not_there(http: httpx.Client) -> None:
    over = {"source.parameters.mean": [0, 5], "tags": [{"own": "1"}, {"course": "own"}]}
    batch = submitted(http, {"sweep": {"spec": SPEC, "over": over}, "tags": {"course": "p05"}, "priority": "low"})
    jobs = [http.get(f"/v1/jobs/{job_id}").json() for job_id in batch["jobs"]]
    assert [job["spec"]["source"]["parameters"] for job in jobs] == [{"mean": 0}, {"mean": 0}, {"mean": 5}, {"mean": 5}]
    assert [job["tags"] for job in jobs[:2]] == [{"course": "p05", "own": "1"}, {"course": "own"}]
    assert {job["priority"] for job in jobs} == {"low"}


@pytest.mark.parametrize(
    ("sweep", "field"),
    [
        ({"spec": SPEC, "over": {"op": ["sum", "total"]}}, "sweep.over.op[1]"),
        ({"spec": SPEC, "over": {"source.n": [1, -1]}}, "sweep.over.source.n[1]"),
        ({"spec": SPEC, "over": {"source": [SPEC["source"], {"type": "values"}]}}, "sweep.over.source[1].values"),
        ({"spec": {**SPEC, "op": "total"}, "over": {"source.seed": [1, 2]}}, "sweep.spec.op"),
        ({"spec": SPEC, "over": {"sauce.n": [1]}}, "sweep.over.sauce.n"),
        ({"spec": SPEC, "over": {}}, "sweep.over"),
        ({"spec": SPEC, "over": {"op": []}}, "sweep.over.op"),
        ({"spec": SPEC, "over": {"op..x": [1]}}, "sweep.over.op..x"),
        ({"spec": SPEC, "over": {"kind.x": [1]}}, "sweep.over.kind.x"),
        ({"spec": SPEC, "over": {"source.n": [1], "source": [1]}}, "sweep.over.source.n"),
        ({"spec": SPEC, "over": {"source.n": [1] * 101, "source.seed": [1] * 100}}, "sweep.over"),
        ({"spec": [], "over": {"op": ["sum"]}}, "sweep.spec"),
        ({"spec": {**SPEC, "source": {"type": "values", "values": [1] * 9000}}, "over": {"op": ["x"] * 9000}}, "sweep"),
    ],
)
def test_what_is_wrong_with_a_sweep_is_named(refusing: httpx.Client, sweep: Any, field: str) -> None:
    answer = refusing.post("/v1/batches", json={"sweep": sweep})
    assert answer.status_code == 422, answer.text
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_the_values_that_go_with_a_wrong_field_are_told(refusing: httpx.Client) -> None:
    sweep = {"spec": {"kind": "reduce", "strategy": "exact"}, "over": {"op": ["sum"], "source.type": ["generate"]}}
    [problem] = refusing.post("/v1/batches", json={"sweep": sweep}).json()["errors"][:1]
    assert problem["field"] == "sweep.spec.source.distribution"
    assert problem["message"] == 'Field required (with op = "sum", source.type = "generate")'
