"""Conversations about the catalogue (ops, strategies, presets), devices, workers and users."""

from datetime import datetime
from typing import Any

from warpfold.client.answer import Answer
from warpfold.client.exchange import Call, Steps, send
from warpfold.client.http import httpx


class User(Answer):
    """The user whom a token belongs to."""

    name: str
    role: str


class Op(Answer):
    """A reduction: `terms` names the exact sums it needs, `results` the dtype of its value by dtype of the elements."""

    name: str
    summary: str
    terms: str
    sources: int
    ddof: bool
    parameters: tuple[str, ...] = ()
    results: dict[str, str]


class Strategy(Answer):
    """A way to reduce on one backend; `computes` are dtypes by op."""

    name: str
    backend: str
    summary: str
    error_bound: str
    computes: dict[str, list[str]]


class Rates(Answer):
    """How fast a slot is, in 1e9 bytes a second: from a file in memory to its sum, over the bus (None of a CPU), in the
    memory of the device, and of elements that it makes. `overhead_s` is the time of a small reduction, in seconds."""

    read_gb_per_s: float
    copy_gb_per_s: float | None
    reduce_gb_per_s: float
    generate_gb_per_s: float
    overhead_s: float


class Device(Answer):
    """A device that workers hold; `device` describes it, `live` says whether a job could run there now. `rates` are
    None until they were measured."""

    host: str
    device: dict[str, Any]
    workers: list[str]
    live: bool
    rates: Rates | None = None


class Preset(Answer):
    """A study that a job of kind "preset" runs; `jobs` is how many it consists of."""

    name: str
    title: str
    description: str
    jobs: int


class Worker(Answer):
    """The process of one slot."""

    id: str
    slot: str
    backend: str
    host: str
    state: str
    job_id: str | None
    device: str | None
    version: str
    heartbeat_at: datetime


def ops() -> Steps[list[Op]]:
    return send(Call("GET", "/v1/ops", lambda answer: [Op.model_validate(row) for row in answer.json()["ops"]]))


def strategies() -> Steps[list[Strategy]]:
    return send(Call("GET", "/v1/strategies", lambda answer: [Strategy.model_validate(row) for row in _items(answer)]))


def presets() -> Steps[list[Preset]]:
    return send(Call("GET", "/v1/presets", lambda answer: [Preset.model_validate(row) for row in _items(answer)]))


def devices() -> Steps[list[Device]]:
    return send(Call("GET", "/v1/devices", lambda answer: [Device.model_validate(row) for row in _items(answer)]))


def workers() -> Steps[list[Worker]]:
    return send(Call("GET", "/v1/workers", lambda answer: [Worker.model_validate(row) for row in _items(answer)]))


def whoami() -> Steps[User]:
    return send(Call("GET", "/v1/users/me", lambda answer: User.model_validate_json(answer.content)))


def rotate_token() -> Steps[str]:
    return send(Call("POST", "/v1/users/me/tokens/rotate", lambda answer: str(answer.json()["token"])))


def _items(answer: httpx.Response) -> list[Any]:
    items: list[Any] = answer.json()["items"]
    return items
