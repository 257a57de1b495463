"""Which puzzle of thread-block clusters is to be solved."""

from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from warpfold.contract.fields import BackendName, JobOptions
from warpfold.kernels.puzzles import ClusterShape, Puzzle


class ClusterSpec(JobOptions):
    """Solve one of three puzzles of thread-block clusters: blocks that coordinate, that reduce, that do so in levels.

    Clusters came with compute capability 9.0. Elsewhere a model makes the same additions in the same order, gives the
    same bits, and says that it is a model.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"kind": "cluster", "puzzle": "reduction"}]})

    kind: Literal["cluster"]
    puzzle: Puzzle
    size: int = Field(1024, strict=True, description="elements, at most one a thread")
    threads: int = Field(256, strict=True, description="a block: a power of two from 32 to 1024")
    cluster_size: int = Field(4, strict=True, description="blocks: 1 to 8, or 16 where the chip allows it")
    backend: BackendName = Field("auto", description="cpu asks for the model")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        self.shape()
        return self

    def shape(self) -> ClusterShape:
        """The shape as the puzzle takes it."""
        return ClusterShape(self.size, self.threads, self.cluster_size)
