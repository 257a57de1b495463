"""What an accuracy study is asked to compare, and three numbers to be added in every order."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from warpfold.contract.fields import BackendName, DistributionName, JobOptions, Listed, Number, Parameter
from warpfold.kernels.accuracy.axes import MAX_POINTS, AccuracyAxes
from warpfold.kernels.accuracy.methods import method_named, methods, methods_on
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.generate import plan
from warpfold.kernels.source import GeneratedSource
from warpfold.kernels.values import array_of

MAX_SIZE = 1 << 32


def _known(name: str) -> str:
    return method_named(name).name


def _offer(schema: JsonDict) -> None:
    schema["enum"] = list(methods())


MethodName = Annotated[str, AfterValidator(_known), Field(json_schema_extra=_offer)]
FloatName = Literal["float16", "bfloat16", "float32", "float64"]
Size = Annotated[int, Field(ge=1, le=MAX_SIZE, strict=True)]


class AccuracySpec(JobOptions):
    """Compute every op on every array by every method, and hold each result to the exact value.

    What cannot be computed (not claimed, not installed, on another kind of slot, too large) is skipped with the
    reason, and the rest goes on.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "accuracy",
                    "methods": ["sequential", "tree", "kahan", "numpy", "exact"],
                    "distributions": ["mixed", "pathological", "normal"],
                    "sizes": [1000, 100000],
                },
                {
                    "kind": "accuracy",
                    "ops": ["dot", "norm2"],
                    "distributions": ["ill_conditioned"],
                    "parameters": {"ill_conditioned": {"condition": 1e6}},
                    "dtypes": ["float32", "float64"],
                    "sizes": [10000],
                    "permutations": 16,
                    "seed": 42,
                },
            ]
        }
    )

    kind: Literal["accuracy"]
    methods: Listed[MethodName] | None = Field(
        None,
        max_length=MAX_POINTS,
        description="null: all that the slot can run; an unknown name is answered with the list",
    )
    ops: Listed[Literal["sum", "mean", "dot", "norm2", "prod"]] = Field(
        ("sum",), max_length=MAX_POINTS, description="`dot` takes a second array of the same distribution, seed + 1"
    )
    distributions: Listed[DistributionName] = Field(
        ("mixed", "pathological", "normal"), max_length=MAX_POINTS, description="of the data"
    )
    dtypes: Listed[FloatName] = Field(("float32",), max_length=MAX_POINTS)
    sizes: Listed[Size] = Field(max_length=MAX_POINTS, description="numbers of elements")
    parameters: dict[DistributionName, dict[str, Parameter]] = Field(
        default_factory=dict, max_length=16, description="of each distribution that is not to have its defaults"
    )
    seed: int = Field(0, ge=0, lt=1 << 64, strict=True)
    permutations: int = Field(8, ge=0, le=64, strict=True, description="random orders in which each method is repeated")
    runs: int = Field(3, ge=1, le=64, strict=True, description="of the given order, compared by their bits")
    backend: BackendName = Field(
        "auto", description="auto: a GPU where there is one and a method wants it; its host runs loops and NumPy"
    )

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        for backend in ("cpu", "cuda") if self.backend == "auto" else (self.backend,):
            self.axes(backend)
        for name in self.parameters:
            if name not in self.distributions:
                raise InvalidInput(f"{name!r} is not among the distributions", f"parameters.{name}")
        for distribution in self.distributions:
            for dtype in self.dtypes:
                self._check_makeable(distribution, dtype)
        return self

    def _check_makeable(self, distribution: str, dtype: str) -> None:
        try:
            plan(self.source(distribution, dtype, max(self.sizes)))
        except InvalidInput as error:
            place = (error.field or "").removeprefix("source.")
            if place.startswith("parameters"):
                place = place.replace("parameters", f"parameters.{distribution}")
            else:
                place = "sizes" if place == "n" else "distributions"
            raise InvalidInput(str(error), place) from None

    def axes(self, backend: str) -> AccuracyAxes:
        """The lists as the study takes them on a slot of `backend`."""
        chosen = methods_on(backend) if self.methods is None else self.methods
        return AccuracyAxes(chosen, self.ops, self.distributions, self.dtypes, self.sizes)

    def wants_gpu(self) -> bool:
        """Whether a GPU would compute more of it than a CPU."""
        return self.methods is None or any("cpu" not in method_named(name).backends for name in self.methods)

    def source(self, distribution: str, dtype: str, n: int) -> GeneratedSource:
        """The array of a case."""
        parameters = self.parameters.get(distribution, {})
        return GeneratedSource(distribution, n, self.seed, dtype_named(dtype), parameters)


class ThreeNumbersSpec(JobOptions):
    """Add three numbers in all twelve ways: six orders, and brackets around the first two or the last two."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"kind": "three_numbers"}]})

    kind: Literal["three_numbers"]
    a: Number = Field(1e8, description="a number, or a string such as a hex float; rounded once to `dtype`")
    b: Number = 1.0
    c: Number = -1e8
    dtype: FloatName = "float32"
    backend: Literal["auto", "cpu"] = "auto"

    @model_validator(mode="after")
    def _representable(self) -> Self:
        self.numbers()
        return self

    def numbers(self) -> tuple[Any, Any, Any]:
        """a, b and c as NumPy scalars of the dtype."""
        a, b, c = (self._rounded(name) for name in "abc")
        return a, b, c

    def _rounded(self, name: str) -> Any:
        try:
            (number,) = array_of((getattr(self, name),), dtype_named(self.dtype))
        except InvalidInput as error:
            raise InvalidInput(str(error), name) from None
        if not math.isfinite(number):
            raise InvalidInput("the three numbers are finite", name)
        return number
