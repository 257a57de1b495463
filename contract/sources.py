"""Where the elements of a job come from, as a request says it."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

from warpfold.contract.fields import MAX_ELEMENTS, DistributionName, DTypeName, Listed, Number, Parameter
from warpfold.contract.frozen import Frozen
from warpfold.kernels.dtypes import DTYPES, DType, dtype_named
from warpfold.kernels.generate import plan
from warpfold.kernels.source import GeneratedSource
from warpfold.kernels.values import array_of, dtype_for

TAGGED_FIELDS = frozenset({"source", "other"})
"""Fields that hold a source: in the location of an error the tag follows them."""


def _without_default(schema: JsonDict) -> None:
    """What stands for "none was given" is no dtype that anybody could write."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    dtype = properties["dtype"]
    assert isinstance(dtype, dict)
    del dtype["default"]


class ValuesSource(Frozen):
    """Elements in the request itself: numbers, or strings for what JSON cannot say ("0x1.8p+1", "nan", "inf").

    An integer, which is a number without a point and exponent, is never rounded: one that `dtype` does not hold is an
    error. A float is read as a float64 and rounded once to `dtype`.
    """

    model_config = ConfigDict(json_schema_extra=_without_default)

    type: Literal["values"]
    values: Listed[Number] = Field(
        description="the elements; floats are rounded once to `dtype`, and an integer that it does not hold is an error"
    )
    dtype: DTypeName = Field(
        "",
        description="left out: int64 for integers alone, or uint64 where they need it; bool for true and false alone; "
        "float64 where an element is written as a float (1.0, 1e3), and, in `dot`, beside an array of floats",
    )

    @model_validator(mode="after")
    def _representable(self) -> Self:
        if not self.dtype:
            found = dtype_for(self.values, "source.values")
            object.__setattr__(self, "dtype", found.name)  # frozen for everybody else
        array_of(self.values, dtype_named(self.dtype), "source.values")
        return self

    def beside_floats(self) -> Self:
        """The same elements as float64 if no dtype was given. Raises InvalidInput where that does not hold them."""
        if "dtype" in self.model_fields_set:
            return self
        array_of(self.values, DTYPES["float64"], "source.values")
        return self.model_copy(update={"dtype": "float64"})


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


class DatasetSource(Frozen):
    """An array that was uploaded to `/v1/datasets`."""

    type: Literal["dataset"]
    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] = Field(description="SHA-256 of its .npy file")


Source = Annotated[ValuesSource | GenerateSource | PathSource | DatasetSource, Field(discriminator="type")]


def dtype_of_source(source: Source) -> DType | None:
    """The dtype of the elements; None of a file, which is looked at only where it is."""
    return None if isinstance(source, PathSource | DatasetSource) else dtype_named(source.dtype)


def count_of_source(source: Source) -> int | None:
    """How many elements there are; None of a file."""
    match source:
        case ValuesSource(values=values):
            return len(values)
        case GenerateSource(n=n):
            return n
    return None
