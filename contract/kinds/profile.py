"""Which kernels are to be profiled."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from warpfold.contract.fields import MAX_ELEMENTS, BackendName, DTypeName, JobOptions, Listed, OpName, StrategyName
from warpfold.kernels.bench import Axes, Cache
from warpfold.kernels.catalog import strategies
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.strategy import AUTO

MAX_VALUES = 100
"""Of one list."""

Size = Annotated[int, Field(ge=1, le=MAX_ELEMENTS, strict=True)]


class ProfileSpec(JobOptions):
    """What the kernels of strategies take of a GPU (registers, shared memory, occupancy, waves) at each op, dtype and
    size, and how well they use it, where Nsight Compute is installed.

    Without a GPU the kernels are compiled for `arch`, and what the compiler knows of them is given.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "profile",
                    "strategies": ["exact", "single_pass", "two_pass"],
                    "ops": ["sum"],
                    "dtypes": ["float32"],
                    "sizes": [1000000, 100000000],
                }
            ]
        }
    )

    kind: Literal["profile"]
    strategies: Listed[StrategyName] = Field(
        max_length=MAX_VALUES, description="those with kernels of ours; the kernels of peers are theirs"
    )
    ops: Listed[OpName] = Field(("sum",), max_length=MAX_VALUES)
    dtypes: Listed[DTypeName] = Field(("float32",), max_length=MAX_VALUES)
    sizes: Listed[Size] = Field(max_length=MAX_VALUES, description="numbers of elements")
    arch: Literal["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"] = Field(
        "sm_90", description="to compile for where there is no GPU; a GPU has its own"
    )
    counters: bool = Field(True, strict=True, description="run each kernel under ncu, where it is installed")
    backend: BackendName = Field("auto", description="auto: a GPU if there is one, else the compiler alone")

    @model_validator(mode="after")
    def _profilable(self) -> Self:
        if AUTO in self.strategies:
            raise InvalidInput("name the strategies to be profiled; 'auto' is none", "strategies")
        on_gpus = {row.name for row in strategies() if row.backend == "cuda"}
        for name in self.strategies:
            if name not in on_gpus:
                raise InvalidInput(f"strategy {name!r} has no kernels: it does not run on a GPU", "strategies")
        self.axes()
        return self

    def axes(self) -> Axes:
        """The lists, checked to be bounded and without repetitions. Raises InvalidInput naming the list."""
        return Axes(self.strategies, self.ops, self.dtypes, self.sizes, (Cache.COLD,))
