"""What a scaling study is asked to measure."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from warpfold.contract.fields import (
    MAX_ELEMENTS,
    BackendName,
    DistributionName,
    DTypeName,
    JobOptions,
    Listed,
    Parameter,
)
from warpfold.kernels.bench.data import Data
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.scaling.axes import Algorithm, Method, Mode
from warpfold.kernels.scaling.study import MAX_MESSAGE, MAX_RANKS, WORD, Study

MAX_VALUES = 100
"""Of one list."""

Size = Annotated[int, Field(ge=1, le=MAX_ELEMENTS, strict=True)]
Ranks = Annotated[int, Field(ge=1, le=MAX_RANKS, strict=True)]
Message = Annotated[int, Field(ge=WORD, le=MAX_MESSAGE, multiple_of=WORD, strict=True)]


class ScalingSpec(JobOptions):
    """Measure how a sum scales over the GPUs of one machine, with NCCL between them.

    Each GPU makes and reduces its own part of one array, then an all-reduce adds up what the parts came to. Without
    GPUs the same study runs over processes and threads of the CPU, and the result says so. What a machine cannot run
    (more ranks than it has, more data than fits) is skipped with the reason.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "scaling",
                    "sizes": [1000000, 100000000],
                    "sizes_per_rank": [16777216],
                    "messages": [8, 4096, 1048576],
                    "ranks": [1, 2],
                    "algorithms": ["ring", "tree"],
                }
            ]
        }
    )

    kind: Literal["scaling"]
    sizes: Listed[Size] = Field((), max_length=MAX_VALUES, description="strong scaling: elements of whole arrays")
    sizes_per_rank: Listed[Size] = Field(
        (), max_length=MAX_VALUES, description="weak scaling: elements of each rank's part"
    )
    messages: Listed[Message] = Field((), max_length=MAX_VALUES, description="bytes of bare all-reduces")
    ranks: Listed[Ranks] = Field(
        (1, 2, 4, 8), max_length=MAX_VALUES, description="GPUs; where there are none, processes or threads"
    )
    methods: Listed[Method] = Field(
        (Method.EXACT, Method.FLOAT),
        max_length=MAX_VALUES,
        description="exact: each rank's exact state, all-reduced as integers; float: each rank's sum as one float64",
    )
    modes: Listed[Mode] = Field(
        (Mode.ONE_PROCESS, Mode.PROCESS_PER_RANK), max_length=MAX_VALUES, description="who drives the ranks"
    )
    algorithms: Listed[Algorithm] = Field(
        (Algorithm.RING, Algorithm.TREE), max_length=MAX_VALUES, description="of the all-reduce; auto lets NCCL choose"
    )
    dtype: DTypeName = Field("float32", description="of the elements: a float")
    distribution: DistributionName = Field("normal", description="of the elements")
    parameters: dict[str, Parameter] = Field(default_factory=dict, max_length=16, description="of the distribution")
    seed: int = Field(0, ge=0, lt=1 << 64, strict=True)
    samples: int = Field(30, ge=3, le=10_000, strict=True, description="runs of each point")
    time_limit_s: float = Field(
        5.0, gt=0, le=3600, strict=True, description="of sampling one point; at least 3 runs are made"
    )
    backend: BackendName = Field("auto", description="auto: all GPUs of a machine, else one, else the CPU")

    @model_validator(mode="after")
    def _measurable(self) -> Self:
        self.study()
        widest = max(self.sizes_per_rank, default=0) * max(self.ranks)
        if widest > MAX_ELEMENTS:
            raise InvalidInput(f"{widest} elements in all exceed {MAX_ELEMENTS}", "sizes_per_rank")
        return self

    def study(self) -> Study:
        """The study as `kernels.scaling` takes it. Raises InvalidInput naming the field."""
        return Study(
            sizes=self.sizes,
            sizes_per_rank=self.sizes_per_rank,
            messages=self.messages,
            ranks=self.ranks,
            methods=self.methods,
            modes=self.modes,
            algorithms=self.algorithms,
            dtype=self.dtype,
            data=Data(self.distribution, self.parameters, self.seed),
            samples=self.samples,
            time_limit_s=self.time_limit_s,
        )
