"""Conversations about arrays: a small one goes along with the job, a large one is uploaded first."""

import base64
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from warpfold.app.jobs.fields import BackendName, Priority
from warpfold.client import datasets, jobs
from warpfold.client.arrays import as_numpy
from warpfold.client.datasets import ArrayContent
from warpfold.client.exchange import Call, Steps, one
from warpfold.client.models import Job, Merged
from warpfold.kernels.dtypes import dtype_of
from warpfold.kernels.exact import ExactState

MOST_VALUES = 10_000
"""Elements up to which an array travels in the request itself."""


class Options(TypedDict, total=False):
    """What a reduction may be told besides its op; the service's defaults hold for the rest (`POST /v1/jobs`)."""

    strategy: str
    backend: BackendName
    nan_policy: str
    ddof: int
    timeout_s: float
    priority: Priority
    tags: Mapping[str, str]


def submit(
    data: object, op: str, *, other: object, dtype: str | None, options: Options, key: str | None = None
) -> Steps[Job]:
    """Hand in the reduction of an array, or of two."""
    spec: dict[str, Any] = {"kind": "reduce", "op": op, "source": (yield from source(data, dtype))}
    if other is not None:
        spec["other"] = yield from source(other, dtype)
    spec |= {name: value for name, value in options.items() if value is not None}
    return (yield from jobs.submit(spec, key))


def source(data: object, dtype: str | None = None) -> Steps[dict[str, Any]]:
    """The `source` of a spec for an array or, given as a Path, for a .npy file; uploaded unless it is small."""
    if isinstance(data, Path):
        kept = yield from datasets.upload(datasets.content_of(data, dtype), data.name[:128])
        return {"type": "dataset", "id": kept.id}
    array = as_numpy(data, dtype)
    if array.size > MOST_VALUES:
        kept = yield from datasets.upload(ArrayContent(array), "")
        return {"type": "dataset", "id": kept.id}
    return {"type": "values", "values": _values(array), "dtype": dtype_of(array.dtype).name}


def _values(array: NDArray[Any]) -> list[Any]:
    """Elements as JSON can say them: a float that is not finite by its name. Every other one is exact in Python."""
    if array.dtype.kind not in "fV":
        plain: list[Any] = array.reshape(-1).tolist()
        return plain
    wide = array.reshape(-1).astype(np.float64).tolist()
    return [value if math.isfinite(value) else str(value) for value in wide]


def merge(states: Iterable[ExactState | bytes | str], op: str, dtype: str) -> Steps[Merged]:
    """Have the service add exact states: objects, canonical bytes, or base64 as results carry them."""
    body = {"op": op, "dtype": dtype, "states": [_base64(state) for state in states]}
    return one(Call("POST", "/v1/states/merge", lambda answer: Merged.model_validate_json(answer.content), body=body))


def _base64(state: ExactState | bytes | str) -> str:
    if isinstance(state, str):
        return state
    return base64.b64encode(state.to_bytes() if isinstance(state, ExactState) else state).decode()
