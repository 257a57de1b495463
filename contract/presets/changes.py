"""A preset's jobs changed as a request asks: shorter, quicker, on one backend."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from warpfold.contract.fields import BackendName
from warpfold.contract.kinds.accuracy import AccuracySpec
from warpfold.contract.kinds.benchmark import BenchmarkSpec
from warpfold.contract.kinds.cluster import ClusterSpec
from warpfold.contract.kinds.profile import ProfileSpec
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.kinds.scaling import ScalingSpec
from warpfold.contract.sources import GenerateSource, Source
from warpfold.contract.tasks import TaskSpec
from warpfold.kernels.catalog import strategies
from warpfold.kernels.scaling.study import WORD


@dataclass(frozen=True, slots=True)
class Changes:
    """What to change in every job; None changes nothing.

    `backend` is where to run. `max_n`: longer arrays are left out, or made that long where there is none shorter.
    `time_limit_s` bounds the sampling of one point.
    """

    backend: BackendName | None = None
    max_n: int | None = None
    time_limit_s: float | None = None
    timeout_s: float | None = None


class LeftOut(Exception):
    """This job cannot be changed so; the message says why."""


def changed(spec: TaskSpec, changes: Changes) -> TaskSpec:
    """`spec` with `changes`. Raises LeftOut if it cannot run on the backend that is asked for."""
    values: dict[str, Any] = {}
    if changes.timeout_s is not None and changes.timeout_s < spec.timeout_s:
        values["timeout_s"] = changes.timeout_s
    if changes.max_n is not None:
        values |= _shorter(spec, changes.max_n)
    if changes.time_limit_s is not None and isinstance(spec, BenchmarkSpec | ScalingSpec):
        values["time_limit_s"] = min(spec.time_limit_s, changes.time_limit_s)
    if changes.backend is not None:
        values |= _moved(spec, changes.backend)
    if not values:
        return spec
    try:
        return type(spec).model_validate({**spec.model_dump(), **values})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise LeftOut(str(first.get("ctx", {}).get("error", first["msg"]))) from None


def _shorter(spec: TaskSpec, max_n: int) -> dict[str, Any]:
    match spec:
        case ReduceSpec():
            return {"source": _cut(spec.source, max_n), "other": spec.other and _cut(spec.other, max_n)}
        case BenchmarkSpec() | AccuracySpec() | ProfileSpec():
            return {"sizes": _up_to(spec.sizes, max_n)}
        case ScalingSpec():
            return {
                "sizes": _up_to(spec.sizes, max_n),
                "sizes_per_rank": _up_to(spec.sizes_per_rank, max_n),
                "messages": _up_to(spec.messages, max_n * WORD),
            }
    return {}


def _cut(source: Source, max_n: int) -> dict[str, Any]:
    given = source.model_dump()
    return {**given, "n": min(source.n, max_n)} if isinstance(source, GenerateSource) else given


def _up_to(sizes: tuple[int, ...], most: int) -> tuple[int, ...]:
    return tuple(size for size in sizes if size <= most) or ((most,) if sizes else ())


def _moved(spec: TaskSpec, backend: BackendName) -> dict[str, Any]:
    match spec:
        case BenchmarkSpec() if backend != "auto":
            there = {row.name for row in strategies() if row.backend == backend}
            kept = tuple(name for name in spec.strategies if name in there)
            if not kept or (spec.backend not in ("auto", backend)):
                where = "" if spec.backend == "auto" else f" on {spec.backend}"
                raise LeftOut(f"it measures {', '.join(spec.strategies)}{where}")
            return {"backend": backend, "strategies": kept}
        case ReduceSpec() | ClusterSpec() | BenchmarkSpec() | AccuracySpec() | ScalingSpec() | ProfileSpec():
            if spec.backend not in ("auto", backend):
                raise LeftOut(f"it runs on {spec.backend}")
            return {"backend": backend}
    return {}  # three numbers need no GPU
