import json
from typing import Any

import httpx
import pytest

from tests.support.api import THREE_VALUES
from warpfold.contract.jobs import KINDS
from warpfold.contract.sources import SOURCES

A_LOT = 200_000


def faults(response: httpx.Response) -> list[tuple[str, str]]:
    assert response.status_code == 422, response.text
    return [(error["field"], error["message"]) for error in response.json()["errors"]]


@pytest.mark.parametrize(
    "media_type", ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json"]
)
def test_json_is_taken_under_each_of_its_names(http: httpx.Client, media_type: str) -> None:
    sent = http.post("/v1/jobs", content=json.dumps(THREE_VALUES), headers={"Content-Type": media_type})
    assert sent.status_code == 202


@pytest.mark.parametrize("media_type", ["text/plain", "text/x+json", "+json", "application/x-www-form-urlencoded"])
def test_anything_else_is_415(refusing: httpx.Client, media_type: str) -> None:
    sent = refusing.post("/v1/jobs", content=json.dumps(THREE_VALUES), headers={"Content-Type": media_type})
    assert sent.status_code == 415


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ([], ("", "Input should be an object")),
        ({}, ("kind", "Field required")),
        ({"kind": "x" * A_LOT}, ("kind", f"Input should be one of {', '.join(map(repr, KINDS))}")),
        ({"kind": "reduce", "source": {}}, ("source.type", "Field required")),
        ({"kind": "reduce", "source": []}, ("source", "Input should be an object")),
        (
            {"kind": "reduce", "source": {"type": "file"}},
            ("source.type", f"Input should be one of {', '.join(map(repr, SOURCES))}"),
        ),
        ({**THREE_VALUES, "source": {"type": "values", "values": 1}}, ("source.values", "Input should be an array")),
        ({**THREE_VALUES, "tags": []}, ("tags", "Input should be an object")),
        (
            {"kind": "profile", "strategies": ["exact"], "sizes": [1] * 101},
            ("sizes", "Too many items: there may be at most 100"),
        ),
        (
            {"kind": "benchmark", "strategies": ["exact"], "sizes": [9], "devices": ["cpu"]},
            ("devices", "Too few items: there must be at least 2"),
        ),
        (
            {"kind": "benchmark", "strategies": ["exact"], "sizes": [9], "devices": ["gpu", "cpu"]},
            ("devices.0", "Input should be 'cpu' or 'cuda'"),
        ),
    ],
)
def test_a_fault_is_told_once_in_the_words_of_json_and_quotes_nothing_long(
    refusing: httpx.Client, spec: object, fault: tuple[str, str]
) -> None:
    assert faults(refusing.post("/v1/jobs", json=spec)) == [fault]


LISTS: list[tuple[dict[str, Any], str]] = [
    ({"kind": "benchmark", "strategies": ["exact"]}, "sizes"),
    ({"kind": "benchmark", "sizes": [1]}, "strategies"),
    ({"kind": "accuracy", "sizes": [1]}, "methods"),
    ({"kind": "profile", "strategies": ["exact"]}, "sizes"),
    ({"kind": "scaling"}, "messages"),
    ({"kind": "preset", "preset": "p34"}, "children"),
]


@pytest.mark.parametrize(("spec", "field"), LISTS)
def test_of_very_many_faults_in_a_list_only_the_first_is_looked_for(
    refusing: httpx.Client, spec: dict[str, Any], field: str
) -> None:
    # Two hundred thousand errors, each an object in Python, would hold up everybody for seconds.
    refused = faults(refusing.post("/v1/jobs", json={**spec, field: [None] * A_LOT}))
    assert [name for name, _ in refused if name.startswith(field)] == [f"{field}.0"]


def test_of_very_many_states_too(refusing: httpx.Client) -> None:
    [(field, _)] = faults(refusing.post("/v1/states/merge", json={"states": [None] * A_LOT}))
    assert field == "states.0"


def test_very_many_fields_are_not_read(refusing: httpx.Client) -> None:
    refused = refusing.post("/v1/jobs", json={**THREE_VALUES, **dict.fromkeys(map(str, range(30_000)))})
    assert refused.status_code == 413
    assert "fields" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("benchmark", "time_limit_s", "1"),
        ("benchmark", "target_rse", True),
        ("scaling", "time_limit_s", True),
        ("profile", "counters", 0),
    ],
)
def test_a_number_is_a_number_and_a_flag_a_flag(refusing: httpx.Client, kind: str, field: str, value: object) -> None:
    spec = {"kind": kind, "sizes": [1], field: value}
    if kind != "scaling":
        spec["strategies"] = ["exact"]
    assert [name for name, _ in faults(refusing.post("/v1/jobs", json=spec))] == [field]


TWICE: list[tuple[str, str, str]] = [
    ("/v1/jobs", '{"kind": "reduce", "op": "sum", "op": "max", "source": {"type": "values", "values": [1]}}', "op"),
    ("/v1/jobs", '{"kind": "reduce", "source": {"type": "values", "values": [1], "values": [2]}}', "source.values"),
    ("/v1/jobs", f'{{"kind": "reduce", "name": "a", "name": "{"b" * A_LOT}"}}', "name"),
    ("/v1/batches", '{"specs": [{"kind": "reduce"}, {"source": {"n": 1, "n": 2}}]}', "specs[1].source.n"),
    ("/v1/batches", '{"sweep": {"spec": {}, "over": {"op": ["sum"], "op": ["max"]}}}', "sweep.over.op"),
    ("/v1/states/merge", '{"states": [], "states": []}', "states"),
    ("/v1/users/me/tokens", '{"label": "a", "label": "b"}', "label"),
]


@pytest.mark.parametrize(("path", "body", "field"), TWICE)
def test_a_field_that_is_written_twice_is_refused_by_its_name(
    refusing: httpx.Client, path: str, body: str, field: str
) -> None:
    sent = refusing.post(path, content=body, headers={"Content-Type": "application/json"})
    assert faults(sent) == [(field, "is written twice in one object, and only one of the two would count")]


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/batches"])
def test_a_float_that_float64_makes_whole_is_no_integer(refusing: httpx.Client, path: str) -> None:
    for written in ("1e-400", "4503599627370497.4", "9007199254740993.0"):
        spec = f'{{"kind": "reduce", "source": {{"type": "values", "values": [1, {written}], "dtype": "int64"}}}}'
        body = spec if path == "/v1/jobs" else f'{{"specs": [{spec}]}}'
        [(field, message)] = faults(refusing.post(path, content=body, headers={"Content-Type": "application/json"}))
        assert (field.removeprefix("specs[0]."), message) == ("source.values.1", f"{written!r} is not an integer")


def test_the_same_float_is_rounded_where_floats_are_meant(http: httpx.Client) -> None:
    body = (
        '{"kind": "reduce", "source": {"type": "values", "values": [1e-400, 4503599627370497.4], "dtype": "float64"}}'
    )
    sent = http.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert sent.status_code == 202, sent.text
