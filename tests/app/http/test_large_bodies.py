import asyncio
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psutil
import pytest

from tests.support.api import THREE_VALUES, Api
from tests.support.processes import is_spawned
from warpfold.app.http.large_bodies import LARGE_BYTES, LargeBodies

MANY = {"type": "values", "values": [0.5] * 50_000, "dtype": "float64"}


def posted(http: httpx.Client, spec: object) -> httpx.Response:
    body = json.dumps(spec)
    assert len(body) > LARGE_BYTES
    return http.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})


def test_a_large_submission_is_the_job_it_says(http: httpx.Client) -> None:
    answer = posted(http, {**THREE_VALUES, "source": MANY, "tags": {"size": "large"}})
    assert answer.status_code == 202, answer.text
    spec = http.get(f"/v1/jobs/{answer.json()['id']}").json()["spec"]
    assert spec["source"]["values"] == MANY["values"]
    assert spec["tags"] == {"size": "large"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"op": "total"}, "op"),
        ({"source": {**MANY, "values": [*MANY["values"], "x"]}}, "source.values.50000"),
        ({"source": {**MANY, "dtype": "float63"}}, "source.dtype"),
        ({"source": {**MANY, "values": [1] * 100_001}}, "source.values"),
        ({"unknown": 1}, "unknown"),
        ({"kind": "reduction"}, "kind"),
    ],
)
def test_what_is_wrong_with_a_large_one_is_told_as_with_a_small_one(
    refusing: httpx.Client, changes: dict[str, Any], field: str
) -> None:
    answer = posted(refusing, {**THREE_VALUES, "source": MANY, **changes})
    assert answer.status_code == 422, answer.text
    assert [error["field"] for error in answer.json()["errors"]] == [field]


@pytest.mark.parametrize("body", [b"[" + b"1," * LARGE_BYTES, b"\xff" * (LARGE_BYTES + 1)])
def test_what_is_no_json_is_400(refusing: httpx.Client, body: bytes) -> None:
    answer = refusing.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400


@pytest.mark.parametrize("path", ["/v1/states/merge", "/v1/tokens"])
def test_other_routes_are_no_exception(api: Api, path: str) -> None:
    answer = api.client("root").post(path, json={"states": "x" * LARGE_BYTES, "user": "x"})
    assert answer.status_code == 422


def test_a_body_of_no_declared_length_is_read_all_the_same(http: httpx.Client) -> None:
    def pieces(spec: object) -> Any:
        yield json.dumps(spec).encode()

    for source in (MANY, THREE_VALUES["source"]):
        spec = {**THREE_VALUES, "source": source}
        answer = http.post("/v1/jobs", content=pieces(spec), headers={"Content-Type": "application/json"})
        assert answer.status_code == 202, answer.text


def test_while_a_large_body_is_checked_others_are_served(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()
    checked = LargeBodies.checked

    async def held(self: LargeBodies, *args: Any) -> Any:
        entered.set()
        await asyncio.to_thread(go_on.wait, 60)
        return await checked(self, *args)

    monkeypatch.setattr(LargeBodies, "checked", held)
    spec = {**THREE_VALUES, "source": MANY}
    clients = [api.client() for _ in range(6)]
    bob = api.client("bob")
    with ThreadPoolExecutor(7) as pool:
        sent = [pool.submit(posted, client, spec) for client in clients]
        assert entered.wait(60)
        # Neither another user's requests nor this one's small ones wait for it.
        assert bob.get("/v1/ops").status_code == 200
        assert clients[0].get("/v1/ops").status_code == 200
        go_on.set()
        assert {request.result().status_code for request in sent} == {202}


def test_a_helper_that_dies_is_replaced(http: httpx.Client) -> None:
    assert posted(http, {**THREE_VALUES, "source": MANY}).status_code == 202
    for child in psutil.Process().children(recursive=True):
        if is_spawned(child):
            os.kill(child.pid, signal.SIGKILL)
    assert posted(http, {**THREE_VALUES, "source": MANY}).status_code == 202
