"""What a job is asked to do. One definition serves as request body, stored column, worker argument and OpenAPI."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    GetPydanticSchema,
    StrictBool,
    StrictFloat,
    StrictInt,
    StringConstraints,
    TypeAdapter,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import core_schema

from kernels.catalog import AUTO, backends_for, strategies, strategy_names
from kernels.dtypes import DTYPES, dtype_named
from kernels.errors import InvalidInput
from kernels.generate import DISTRIBUTIONS, plan
from kernels.ops import OPS, NanPolicy, op_named
from kernels.source import GeneratedSource
from kernels.values import array_of

MAX_ELEMENTS = 1 << 40
MAX_TIMEOUT_S = 7 * 24 * 3600

TAGGED_FIELDS = frozenset({"source"})
"""Fields that hold a discriminated union: in the location of an error the tag follows them."""


def _one_of(known: Mapping[str, object], what: str) -> Callable[[str], str]:
    def check(name: str) -> str:
        if name not in known:
            raise InvalidInput(f"unknown {what} {name[:64]!r}; known: {', '.join(known)}")
        return name

    return check


def _known_strategy(name: str) -> str:
    # Looked up late: strategies are found in their folders, which takes a while.
    return _one_of(dict.fromkeys(strategy_names()), "strategy")(name)


def _offer_strategies(schema: JsonDict) -> None:
    schema["enum"] = list(strategy_names())


def _said_as(message: str) -> GetPydanticSchema:
    """One sentence in place of an error for each member of a union."""

    def said(source: Any, handler: Callable[[Any], core_schema.CoreSchema]) -> core_schema.CoreSchema:
        return core_schema.custom_error_schema(
            handler(source), custom_error_type="number", custom_error_message=message
        )

    return GetPydanticSchema(said)


OpName = Annotated[str, AfterValidator(_one_of(OPS, "op")), Field(json_schema_extra={"enum": list(OPS)})]
DTypeName = Annotated[str, AfterValidator(_one_of(DTYPES, "dtype")), Field(json_schema_extra={"enum": list(DTYPES)})]
StrategyName = Annotated[str, AfterValidator(_known_strategy), Field(json_schema_extra=_offer_strategies)]
DistributionName = Annotated[
    str,
    AfterValidator(_one_of(DISTRIBUTIONS, "distribution")),
    Field(json_schema_extra={"enum": list(DISTRIBUTIONS)}),
]
BackendName = Literal["auto", "cpu", "cuda"]
Priority = Literal["low", "normal", "high"]
FiniteFloat = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Parameter = Annotated[StrictInt | FiniteFloat, _said_as("Should be a finite number")]
Number = Annotated[
    StrictBool | StrictInt | FiniteFloat | Annotated[str, StringConstraints(max_length=64)],
    _said_as('Should be a finite number, or a string such as "0x1.8p+1", "nan", "inf", "-inf"'),
]
TagName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
TagValue = Annotated[str, StringConstraints(max_length=256, pattern=r"^[^\x00]*$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ValuesSource(_Frozen):
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


class GenerateSource(_Frozen):
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


class PathSource(_Frozen):
    """A .npy file on the server, under one of its data roots; memory-mapped, never unpickled."""

    type: Literal["path"]
    path: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]


Source = Annotated[ValuesSource | GenerateSource | PathSource, Field(discriminator="type")]


class JobOptions(_Frozen):
    """What every kind of job has."""

    timeout_s: float = Field(300.0, strict=True, gt=0, le=MAX_TIMEOUT_S, description="of running, queueing not counted")
    priority: Priority = "normal"
    tags: dict[TagName, TagValue] = Field(default_factory=dict, max_length=32)


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


JobSpec = ReduceSpec
"""The union of all kinds, discriminated by `kind`."""

job_spec: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)


def needs(spec: JobSpec) -> str:
    """Which slots can run the job: "cpu", "cuda" or "any"."""
    if spec.backend != "auto":
        return spec.backend
    if isinstance(spec.source, PathSource):
        able = tuple({row.backend for row in strategies() if spec.strategy in (AUTO, row.name)})
    else:
        able = backends_for(op_named(spec.op), dtype_named(spec.source.dtype), spec.strategy)
    return able[0] if len(able) == 1 else "any"
