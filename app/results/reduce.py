"""The result of a reduction, as stored and as served."""

import math
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictBool,
    StrictFloat,
    StrictInt,
    WithJsonSchema,
)
from pydantic.config import JsonDict

from kernels.errors import InvalidInput
from kernels.ops import Value

MAX_DIGITS = 4300
"""Longest integer in decimal digits that a result may have: Python and other readers of JSON refuse longer ones."""

_NON_FINITE = ("nan", "inf", "-inf")
_TOO_LONG: int = 10**MAX_DIGITS


def _written(value: Value) -> Value | str:
    """What JSON can say: a non-finite float by name, everything else as it is (integers of any size)."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _read(value: object) -> object:
    return float(value) if value in _NON_FINITE and isinstance(value, str) else value


JsonValue = Annotated[
    StrictBool | StrictInt | StrictFloat,
    BeforeValidator(_read),
    PlainSerializer(_written, when_used="json"),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "string", "enum": list(_NON_FINITE)}],
            "description": 'a number (integers exact, of any size), a bool, or "nan", "inf", "-inf"',
        }
    ),
]
"""A reduced value: a Python bool, int or float here, and in JSON a bool, number or the name of a non-finite one."""


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DeviceView(Frozen):
    """A device, as `kernels.backend.Device` describes it."""

    backend: Literal["cpu", "cuda"]
    name: str
    index: int
    memory_bytes: int
    cores: int = Field(description="streaming multiprocessors, or logical CPUs")
    compute_capability: str | None = Field(description='"9.0" for an H200; null for a CPU')
    uuid: str | None
    versions: dict[str, str] = Field(description="driver, runtime and libraries in use")


class Timings(Frozen):
    """Where the time of a job went, in milliseconds."""

    queued_ms: float = Field(description="from acceptance to start")
    load_ms: float = Field(description="reading or generating the data and moving it to the device")
    kernel_ms: float = Field(description="the reduction itself; device time by events on a GPU")
    total_ms: float = Field(description="from start to result, in the worker")


class Provenance(Frozen):
    """What it takes to repeat the result."""

    warpfold: str = Field(description="version of the service")
    commit: str | None = Field(description="of the service's source, where known")
    python: str
    libraries: dict[str, str] = Field(description="versions of numpy, numba, cupy, driver, …")
    host: str
    worker: str
    attempt: int
    spec_sha256: str = Field(description="of the spec as canonical JSON")
    seed: int | None = Field(description="of a generated source")


_EXAMPLE: JsonDict = {
    "value": 1.0,
    "hex": "0x1.0000000000000p+0",
    "dtype": "float32",
    "count": 3,
    "op": "sum",
    "strategy": "exact",
    "correctly_rounded": True,
    "backend": "cpu",
    "device": {
        "backend": "cpu",
        "name": "AMD EPYC",
        "index": 0,
        "memory_bytes": 25276502016,
        "cores": 2,
        "compute_capability": None,
        "uuid": None,
        "versions": {"python": "3.11.7", "numpy": "2.4.6", "numba": "0.68.1"},
    },
    "timings": {"queued_ms": 5.865, "load_ms": 0.034, "kernel_ms": 0.137, "total_ms": 0.989},
    "provenance": {
        "warpfold": "0.1.0",
        "commit": None,
        "python": "3.11.7",
        "libraries": {"python": "3.11.7", "numpy": "2.4.6", "numba": "0.68.1"},
        "host": "gpu1",
        "worker": "gpu1:cpu",
        "attempt": 1,
        "spec_sha256": "6ae7a5f22ac4dbdcf606a179a2b62bdd93055e5a37993d04e0a47864e12858aa",
        "seed": None,
    },
    "state": "V0ZYUwEACAADAAAAAAAAACEAAQAAAAAAAAAEAA==",
}


class ReduceResult(Frozen):
    """One reduced value with all that is known about it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    value: JsonValue
    hex: str | None = Field(description="what Python's float.hex of the value prints; null for integers and bools")
    dtype: str = Field(description='of the value; "integer" is an integer of any size')
    count: int = Field(description="elements that entered the value")
    op: str
    strategy: str = Field(description="the one that ran, never auto")
    correctly_rounded: bool = Field(description="the value is the true one, rounded once")
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: Timings
    provenance: Provenance
    state: str | None = Field(description="base64 of the exact accumulator's canonical bytes, for /v1/states/merge")


def hex_of(value: Value) -> str | None:
    """`float.hex` of a float ("nan", "inf", "-inf" for non-finite ones), None for integers and bools."""
    return value.hex() if isinstance(value, float) else None


def check_length(value: Value) -> None:
    """Raise InvalidInput if `value` is an integer too long to be served: a product of many integers."""
    if isinstance(value, int) and abs(value) >= _TOO_LONG:
        raise InvalidInput(
            f"the result is an integer of {value.bit_length()} bits, longer than the {MAX_DIGITS} decimal digits "
            "that readers of JSON accept; reduce as a float dtype instead"
        )


def as_json(result: ReduceResult) -> dict[str, Any]:
    """The JSON object to store: every number in it is finite."""
    return result.model_dump(mode="json")
