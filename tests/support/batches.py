"""Batches of three values each, as tests submit them and look at them."""

from typing import Any

import httpx

from tests.support.api import THREE_VALUES, Api


def specs(count: int, **changes: Any) -> list[dict[str, Any]]:
    """This number of specs, which differ by a tag."""
    return [{**THREE_VALUES, "tags": {"number": str(number)}, **changes} for number in range(count)]


def submitted(http: httpx.Client, body: object) -> dict[str, Any]:
    """The answer to a batch that is accepted."""
    answer = http.post("/v1/batches", json=body)
    assert answer.status_code == 201, answer.text
    batch: dict[str, Any] = answer.json()
    return batch


def batch_of(api: Api, count: int, user: str = "ann") -> dict[str, Any]:
    """The answer to a batch of so many jobs."""
    return submitted(api.client(user), {"specs": specs(count)})


def shown(http: httpx.Client, batch: dict[str, Any]) -> dict[str, Any]:
    """The batch as it is now."""
    now: dict[str, Any] = http.get(f"/v1/batches/{batch['id']}").json()
    return now
