import base64
import math
from typing import Any

import httpx
import numpy as np
import pytest

from warpfold.kernels.exact import ExactState
from warpfold.kernels.ops import OPS, Op, Terms


def state(values: Any, terms: Terms = Terms.VALUES, dtype: str = "float64") -> str:
    added = ExactState.empty(terms).add(np.array(values, dtype=dtype))
    return base64.b64encode(added.to_bytes()).decode()


def merge(http: httpx.Client, states: list[str], **options: str) -> httpx.Response:
    return http.post("/v1/states/merge", json={"states": states, **options})


def fault(response: httpx.Response) -> tuple[str, str]:
    assert response.status_code == 422, response.text
    error = response.json()["errors"][0]
    return error["field"], error["message"]


def test_the_documented_example_is_answered(refusing: httpx.Client) -> None:
    document = refusing.get("/openapi.json").json()
    example = document["components"]["schemas"]["MergeRequest"]["examples"][0]
    merged = refusing.post("/v1/states/merge", json=example).json()
    assert (merged["value"], merged["count"], merged["correctly_rounded"]) == (3.5, 2, True)


def test_shards_give_the_value_of_the_whole_in_any_order(refusing: httpx.Client) -> None:
    shards = [state([1e308, 1e-300]), state([-1e308]), state([0.1] * 10)]
    expected = math.fsum([1e-300] + [0.1] * 10)
    answers = [merge(refusing, order).json() for order in (shards, shards[::-1])]
    assert answers[0] == answers[1]
    assert answers[0]["value"] == expected
    assert answers[0]["hex"] == expected.hex()
    assert answers[0]["count"] == 13


def test_the_merged_state_can_be_merged_again(refusing: httpx.Client) -> None:
    part = merge(refusing, [state([1.0]), state([2.0])]).json()["state"]
    assert part == state([1.0, 2.0])
    assert merge(refusing, [part, state([4.0])]).json()["value"] == 7.0


def test_op_and_dtype_say_what_the_sum_is_finished_to(refusing: httpx.Client) -> None:
    values = [state([1, 2], dtype="int64"), state([4], dtype="int64")]
    assert merge(refusing, values, dtype="int64").json()["value"] == 7
    assert merge(refusing, values, dtype="int64").json()["dtype"] == "integer"
    assert merge(refusing, values, op="mean", dtype="int64").json()["value"] == 7 / 3
    assert merge(refusing, values, op="mean", dtype="float32").json()["value"] == float(np.float32(7 / 3))
    squares = [state([3.0], Terms.PRODUCTS), state([4.0], Terms.PRODUCTS)]
    assert merge(refusing, squares, op="norm2").json()["value"] == 5.0
    assert merge(refusing, squares, op="sum_squares").json()["value"] == 25.0


@pytest.mark.parametrize(("values", "shown"), [([math.nan], "nan"), ([math.inf], "inf"), ([-math.inf], "-inf")])
def test_what_is_not_finite_is_named(refusing: httpx.Client, values: list[float], shown: str) -> None:
    assert merge(refusing, [state(values), state([1.0])]).json()["value"] == shown


def test_opposite_infinities_in_two_shards_are_nan(refusing: httpx.Client) -> None:
    assert merge(refusing, [state([math.inf]), state([-math.inf])]).json()["value"] == "nan"


def test_negative_zero_stays_negative_zero(refusing: httpx.Client) -> None:
    assert merge(refusing, [state([-0.0]), state([-0.0])]).json()["hex"] == "-0x0.0p+0"
    assert merge(refusing, [state([-0.0]), state([0.0])]).json()["hex"] == "0x0.0p+0"


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ("not base64!", "base64"),
        ("é", "base64"),
        (base64.b64encode(b"XXXX" + bytes(20)).decode(), "magic"),
        (base64.b64encode(b"WFXS\x09" + bytes(19)).decode(), "version"),
        (base64.b64encode(b"WFXS\x01").decode(), "length"),
        (state([1.0])[:-4], "length"),
        (base64.b64encode(b"WFXS\x01\x07" + bytes(18)).decode(), "terms"),
        (state([3.0], Terms.PRODUCTS), "terms|products"),
    ],
)
def test_the_state_at_fault_is_named_with_what_is_wrong(refusing: httpx.Client, bad: str, word: str) -> None:
    field, message = fault(merge(refusing, [state([1.0]), bad]))
    assert field == "states.1"
    assert any(part in message for part in word.split("|"))


def test_an_op_without_a_state_is_named(refusing: httpx.Client) -> None:
    assert fault(merge(refusing, [state([1.0])], op="max"))[0] == "op"
    assert fault(merge(refusing, [state([1.0])], op="var")) == ("op", "results of var have no exact state")
    assert fault(merge(refusing, [state([1.0])], op="total"))[0] == "op"


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.terms in (Terms.VALUES, Terms.PRODUCTS)])
def test_states_of_no_elements_have_the_empty_value(refusing: httpx.Client, op: Op) -> None:
    merged = merge(refusing, [state([], op.terms)], op=op.name)
    if op.empty is None:
        assert fault(merged) == ("states", f"{op.name} of no elements is undefined")
    else:
        assert (merged.json()["value"], merged.json()["hex"]) == (0.0, "0x0.0p+0")


def test_a_fraction_as_an_integer_is_refused(refusing: httpx.Client) -> None:
    assert fault(merge(refusing, [state([0.5])], dtype="int64"))[0] == "states"


def test_no_states_are_refused(refusing: httpx.Client) -> None:
    assert fault(merge(refusing, []))[0] == "states"


def test_five_thousand_states_are_merged_in_time(refusing: httpx.Client) -> None:
    merged = merge(refusing, [state([0.1])] * 5000).json()
    assert merged["value"] == math.fsum([0.1] * 5000)


A_JOB = {"type": "artefact", "job_id": "bad2cde1-a387-4c34-b05b-cb4651e4f880"}


def test_tables_are_merged_by_a_job(http: httpx.Client) -> None:
    made = http.post("/v1/jobs", json={"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1.0]}})
    table = {"type": "artefact", "job_id": made.json()["id"]}
    body = {"tables": [table, {"type": "table", "path": "january.parquet"}], "sort": False, "min_count": 2}
    answer = http.post("/v1/states/merge", json=body)
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert (job["kind"], job["status"]) == ("merge", "queued")
    assert (job["spec"]["tables"][0], job["spec"]["sort"], job["spec"]["min_count"]) == (table, False, 2)


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, "states", "required"),
        ({"tables": [A_JOB], "states": []}, "states", ""),
        ({"tables": [A_JOB], "op": "sum"}, "op", "does not go with `tables`"),
        (
            {"states": ["V0ZYUwEACAABAAAAAAAAACEAAQAAAAAAAAAGAA=="], "sort": True},
            "sort",
            "is for `tables`, which this request does not have",
        ),
        ({"tables": []}, "tables", "at least 1"),
        ({"tables": [A_JOB] * 1001}, "tables", "at most 1000"),
        ({"tables": [{"type": "artefact", "job_id": "7"}]}, "tables.0.job_id", "UUID"),
        ({"tables": [A_JOB, {"type": "values", "values": [1]}]}, "tables.1.type", "artefact"),
        ({"tables": [{"type": "table", "path": "../secret"}]}, "tables.0.path", ""),
        ({"tables": [{"type": "dataset", "id": "0" * 64}]}, "tables.0.id", ""),
        ({"tables": [A_JOB], "max_groups": 0}, "max_groups", ""),
    ],
)
def test_tables_that_cannot_be_merged_are_named(
    http: httpx.Client, body: dict[str, Any], field: str, words: str
) -> None:
    at, message = fault(http.post("/v1/states/merge", json=body))
    assert at == field
    assert words in message
