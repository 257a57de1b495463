"""Elements that are made where they are reduced."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from warpfold.contract.fields import MAX_ELEMENTS, DistributionName, DTypeName, Parameter
from warpfold.contract.folders import Folders
from warpfold.contract.groupings import ShapeField, check_shape, shape_in_words
from warpfold.contract.placement import Lies
from warpfold.contract.sources.source import SourceSpec
from warpfold.contract.wording import compact_count
from warpfold.kernels.dtypes import DType, dtype_named
from warpfold.kernels.generate import plan
from warpfold.kernels.source import GeneratedSource


@lru_cache(1024)
def _check(distribution: str, n: int, dtype: str, parameters: tuple[tuple[str, float], ...]) -> None:
    """Raise InvalidInput that names the field if no seed can make such elements. The sources of a sweep are checked
    once."""
    plan(GeneratedSource(distribution, n, 0, dtype_named(dtype), dict(parameters)))


class GenerateSource(SourceSpec):
    """Elements that the worker generates. The same seed gives the same bits on every backend."""

    type: Literal["generate"]
    distribution: DistributionName = Field(
        description="Distribution of the elements. `/v1/ops` lists the distributions."
    )
    n: int = Field(ge=0, le=MAX_ELEMENTS, strict=True, description="The number of elements.")
    seed: int = Field(0, ge=0, lt=1 << 64, strict=True, description="Seed of the random numbers.")
    dtype: DTypeName = Field("float32", description="Element type.")
    parameters: dict[str, Parameter] = Field(
        default_factory=dict,
        max_length=16,
        description="The parameters of the distribution; `/v1/ops` lists them with their defaults.",
    )
    shape: ShapeField = None

    @model_validator(mode="after")
    def _makeable(self) -> Self:
        _check(self.distribution, self.n, self.dtype, tuple(self.parameters.items()))
        check_shape(self.shape, self.n)
        return self

    @property
    def known_dtype(self) -> DType:
        return dtype_named(self.dtype)

    @property
    def lies(self) -> Lies:
        return "made"

    @property
    def known_count(self) -> int:
        return self.n

    @property
    def known_shape(self) -> tuple[int, ...]:
        return self.shape or (self.n,)

    @property
    def generator_seed(self) -> int:
        return self.seed

    def generated(self) -> GeneratedSource:
        """The generator of the elements."""
        return GeneratedSource(self.distribution, self.n, self.seed, self.known_dtype, self.parameters)

    def identity(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in sorted(self.parameters.items()))
        of_shape = shape_in_words(self.shape)
        return f"{self.n:,} {self.distribution}({parameters}) elements as {self.dtype}{of_shape}, seed {self.seed}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        match stored:
            case {"n": int(n), "distribution": distribution, "dtype": dtype}:
                return f"{compact_count(n)} {distribution} {dtype}"
        return None

    def open(self, folders: Folders) -> GeneratedSource:
        return self.generated()

    def shortened(self, most: int) -> Self:
        return self.model_copy(update={"n": min(self.n, most)})
