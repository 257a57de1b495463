"""Puzzles of thread-block clusters: which is to be solved, and its answer."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from warpfold.contract.fields import BackendName
from warpfold.contract.frozen import Frozen
from warpfold.contract.json_value import JsonValue
from warpfold.contract.kinds.spec import Task, moved_from
from warpfold.contract.needs import ANY
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.timings import Timings
from warpfold.kernels.puzzles import ClusterShape, Puzzle


class ClusterSpec(Task):
    """Solve one of three puzzles of thread-block clusters: blocks that coordinate, blocks that reduce, and blocks that
    reduce in levels.

    Clusters need compute capability 9.0. On other devices a model makes the same additions in the same order and gives
    the same bits, and the result says that a model ran.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"kind": "cluster", "puzzle": "reduction"}]})

    kind: Literal["cluster"]
    puzzle: Puzzle
    size: int = Field(1024, strict=True, description="The number of elements, at most one for each thread.")
    threads: int = Field(256, strict=True, description="The threads of a block: a power of two from 32 to 1024.")
    cluster_size: int = Field(
        4, strict=True, description="The blocks of the cluster: 1 to 8, or 16 where the chip allows it."
    )
    backend: BackendName = Field(
        "auto", description="`auto` takes any slot; a device without clusters runs the model. `cpu` asks for the model."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        self.shape()
        return self

    def shape(self) -> ClusterShape:
        """The shape as the puzzle takes it."""
        return ClusterShape(self.size, self.threads, self.cluster_size)

    def needs(self) -> str:
        return ANY if self.backend == "auto" else self.backend  # a CPU has a model of clusters

    def moved(self, backend: BackendName) -> Mapping[str, Any]:
        return moved_from(self.backend, backend)

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        threads, blocks = stored.get("threads"), stored.get("cluster_size")
        return f"{stored.get('puzzle')} of {stored.get('size')} elements", f"{blocks} blocks of {threads} threads"


class CheckView(Frozen):
    """A property that the answer must have."""

    name: str
    passed: bool


class ClusterResult(Frozen):
    """The result of a puzzle."""

    puzzle: str
    size: int
    threads: int
    cluster_size: int
    values: tuple[JsonValue, ...] = Field(description="The sum of each block as float32, or the one sum.")
    texts: tuple[str, ...] = Field(
        description="The values with the fewest digits that tell each float32 from the others."
    )
    hex: tuple[str, ...] = Field(description="The values as Python's float.hex prints them.")
    model: bool = Field(
        description="Whether the CPU made the same additions in the same order, because no cluster ran."
    )
    why_model: str | None = Field(description="Why a model ran; null if a cluster ran.")
    same_bits_as_model: bool = Field(description="Whether the sums have the same bits as those of the model.")
    checks: tuple[CheckView, ...]
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: Timings
    provenance: Provenance
