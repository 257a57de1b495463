"""Conversations about who sees a dataset, a job or a batch."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from warpfold.client.answer import Answer
from warpfold.client.exchange import Call, Steps, send
from warpfold.client.http import httpx

Thing = Literal["dataset", "job", "batch"]
"""What can be shared."""

_PATHS: Mapping[Thing, str] = MappingProxyType({"dataset": "/v1/datasets", "job": "/v1/jobs", "batch": "/v1/batches"})


class Sharing(Answer):
    """Who sees a thing beside its owner and admins: everyone, or the users who are named."""

    everyone: bool
    users: tuple[str, ...] = ()


def get(thing: Thing, identity: str) -> Steps[Sharing]:
    return send(Call("GET", f"{_PATHS[thing]}/{identity}/sharing", _read))


def put(thing: Thing, identity: str, users: Sequence[str], *, everyone: bool) -> Steps[Sharing]:
    body = {"everyone": everyone, "users": list(users)}
    return send(Call("PUT", f"{_PATHS[thing]}/{identity}/sharing", _read, body=body))


def _read(response: httpx.Response) -> Sharing:
    return Sharing.model_validate_json(response.content)
