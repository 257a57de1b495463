"""What a job is asked to do. One definition serves as request body, stored column, worker argument and OpenAPI."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, FailFast, Field, StringConstraints, TypeAdapter, model_validator

from app.jobs.benchmark_spec import BenchmarkSpec
from app.jobs.cluster_spec import ClusterSpec
from app.jobs.fields import (
    MAX_ELEMENTS,
    BackendName,
    DistributionName,
    DTypeName,
    Frozen,
    JobOptions,
    Number,
    OpName,
    Parameter,
    StrategyName,
)
from kernels.catalog import AUTO, backends_for, strategies
from kernels.dtypes import dtype_named
from kernels.errors import InvalidInput
from kernels.generate import plan
from kernels.ops import NanPolicy, op_named
from kernels.source import GeneratedSource
from kernels.values import array_of

TAGGED_FIELDS = frozenset({"source"})
"""Fields that hold a discriminated union: in the location of an error the tag follows them."""


class ValuesSource(Frozen):
    """Elements in the request itself: numbers, or strings for what JSON cannot say ("0x1.8p+1", "nan", "inf")."""

    type: Literal["values"]
    values: Annotated[tuple[Number, ...], FailFast()] = Field(
        description="the elements; each is rounded once to `dtype`"
    )
    dtype: DTypeName = "float64"

    @model_validator(mode="after")
    def _representable(self) -> Self:
        array_of(self.values, dtype_named(self.dtype), "source.values")
        return self


class GenerateSource(Frozen):
    """Elements made where they are reduced: a seed names the same bits on every backend."""

    type: Literal["generate"]
    distribution: DistributionName
    n: int = Field(ge=0, le=MAX_ELEMENTS, strict=True, description="how many elements")
    seed: int = Field(0, ge=0, lt=1 << 64, strict=True)
    dtype: DTypeName = "float32"
    parameters: dict[str, Parameter] = Field(
        default_factory=dict, max_length=16, description="of the distribution; `/v1/ops` lists them with their defaults"
    )

    @model_validator(mode="after")
    def _makeable(self) -> Self:
        plan(GeneratedSource(self.distribution, self.n, self.seed, dtype_named(self.dtype), self.parameters))
        return self


class PathSource(Frozen):
    """A .npy file on the server, under one of its data roots; memory-mapped, never unpickled."""

    type: Literal["path"]
    path: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]


Source = Annotated[ValuesSource | GenerateSource | PathSource, Field(discriminator="type")]


class ReduceSpec(JobOptions):
    """Reduce one array to one value."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "reduce",
                    "op": "sum",
                    "source": {"type": "values", "values": [1e8, 1, -1e8], "dtype": "float32"},
                },
                {
                    "kind": "reduce",
                    "op": "sum",
                    "strategy": "exact",
                    "backend": "auto",
                    "source": {"type": "generate", "distribution": "normal", "n": 10000000, "seed": 42},
                    "timeout_s": 300,
                    "priority": "normal",
                    "tags": {"course": "p05"},
                },
            ]
        }
    )

    kind: Literal["reduce"]
    op: OpName = "sum"
    strategy: StrategyName = AUTO
    backend: BackendName = "auto"
    nan_policy: NanPolicy = NanPolicy.PROPAGATE
    source: Source

    @model_validator(mode="after")
    def _claimed(self) -> Self:
        # A file's dtype is known only where the file is: the worker checks that case.
        if not isinstance(self.source, PathSource):
            able = backends_for(op_named(self.op), dtype_named(self.source.dtype), self.strategy)
            if self.backend not in ("auto", *able):
                raise InvalidInput(
                    f"strategy {self.strategy!r} computes {self.op} of {self.source.dtype} on "
                    f"{' and '.join(able)}, not on {self.backend}",
                    "backend",
                )
        return self


JobSpec = Annotated[ReduceSpec | BenchmarkSpec | ClusterSpec, Field(discriminator="kind")]
"""The union of all kinds."""

KINDS = ("reduce", "benchmark", "cluster")
"""The values of `kind`, which is the first part of the location of an error in a spec."""

job_spec: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)


def needs(spec: JobSpec) -> str:
    """Which slots can run the job: "cpu", "cuda" or "any"."""
    if spec.backend != "auto":
        return spec.backend
    match spec:
        case ClusterSpec():
            return "any"  # the CPU has a model
        case BenchmarkSpec():
            able = spec.backends()
        case ReduceSpec(source=source):
            if isinstance(source, PathSource):
                able = tuple({row.backend for row in strategies() if spec.strategy in (AUTO, row.name)})
            else:
                able = backends_for(op_named(spec.op), dtype_named(source.dtype), spec.strategy)
    return able[0] if len(able) == 1 else "any"
