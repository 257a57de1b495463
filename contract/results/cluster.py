"""The result of a puzzle of thread-block clusters, as stored and as served."""

from typing import Literal

from pydantic import Field

from warpfold.contract.frozen import Frozen
from warpfold.contract.json_value import JsonValue
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.timings import Timings


class CheckView(Frozen):
    """A property that the answer must have."""

    name: str
    passed: bool


class ClusterResult(Frozen):
    """The answer of a puzzle."""

    puzzle: str
    size: int
    threads: int
    cluster_size: int
    values: tuple[JsonValue, ...] = Field(description="float32: the sum of each block, or the one sum")
    texts: tuple[str, ...] = Field(description="the same with the fewest digits that tell each float32 from the others")
    hex: tuple[str, ...] = Field(description="what Python's float.hex of each prints")
    model: bool = Field(description="no cluster ran: the CPU made the same additions in the same order")
    why_model: str | None
    same_bits_as_model: bool
    checks: tuple[CheckView, ...]
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: Timings
    provenance: Provenance
