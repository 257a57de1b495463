"""The result of a reduction, as stored and as served."""

from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from warpfold.contract.frozen import Frozen
from warpfold.contract.json_value import JsonValue
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.timings import Timings

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
    "timings": {"queued_ms": 5.865, "prepare_ms": 0.0, "load_ms": 0.034, "kernel_ms": 0.137, "total_ms": 0.989},
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
