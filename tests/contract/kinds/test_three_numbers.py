"""Submissions of the kind `three_numbers`."""

from typing import Any

import httpx
import pytest


def test_three_numbers_need_no_more_than_their_kind(http: httpx.Client) -> None:
    answer = http.post("/v1/jobs", json={"kind": "three_numbers"})
    assert answer.status_code == 202, answer.text
    spec = answer.json()["spec"]
    assert (spec["a"], spec["b"], spec["c"], spec["dtype"]) == (1e8, 1.0, -1e8, "float32")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"a": "x"}, "a"),
        ({"b": "nan"}, "b"),
        ({"a": 1, "c": 1e5, "dtype": "float16"}, "c"),
        ({"dtype": "int8"}, "dtype"),
    ],
)
def test_what_is_no_number_of_the_dtype_is_refused_by_field(
    http: httpx.Client, change: dict[str, Any], field: str
) -> None:
    answer = http.post("/v1/jobs", json={"kind": "three_numbers", **change})
    assert answer.status_code == 422, answer.text
    assert [error["field"] for error in answer.json()["errors"]] == [field]
