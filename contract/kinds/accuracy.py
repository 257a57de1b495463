"""Accuracy studies: which methods are to be compared on what, and how far each was from the truth."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from warpfold.contract.fields import BackendName, DistributionName, FloatName, Listed, Parameter
from warpfold.contract.frozen import Frozen
from warpfold.contract.json_value import JsonValue
from warpfold.contract.kinds.spec import Task, moved_from, up_to
from warpfold.contract.needs import ANY, GPU_FIRST
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.summaries import lists, span
from warpfold.contract.timings import StudyTimings
from warpfold.kernels.accuracy.axes import MAX_POINTS, AccuracyAxes
from warpfold.kernels.accuracy.methods import method_named, methods, methods_on
from warpfold.kernels.accuracy.point import BoundVerdict
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.generate import plan
from warpfold.kernels.source import GeneratedSource
from warpfold.kernels.studies.outcome import Outcome

MAX_SIZE = 1 << 32


def _known(name: str) -> str:
    return method_named(name).name


def _offer(schema: JsonDict) -> None:
    schema["enum"] = list(methods())


MethodName = Annotated[str, AfterValidator(_known), Field(json_schema_extra=_offer)]
Size = Annotated[int, Field(ge=1, le=MAX_SIZE, strict=True)]


class AccuracySpec(Task):
    """Compute every op on every array by every method, and compare each result with the exact value.

    A case that cannot be computed is skipped with the reason, and the study goes on. The method may not compute the op,
    may not be installed or may need another kind of slot, or the array may be too large.
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
        description="The ways to add; all that the slot can run if left out; the error about an unknown name lists"
        " them.",
    )
    ops: Listed[Literal["sum", "mean", "dot", "norm2", "prod"]] = Field(
        ("sum",),
        max_length=MAX_POINTS,
        description="The ops. `dot` takes a second array of the same distribution, whose seed is one higher.",
    )
    distributions: Listed[DistributionName] = Field(
        ("mixed", "pathological", "normal"),
        max_length=MAX_POINTS,
        description="The distributions that the data is drawn from.",
    )
    dtypes: Listed[FloatName] = Field(("float32",), max_length=MAX_POINTS, description="Element types of the arrays.")
    sizes: Listed[Size] = Field(max_length=MAX_POINTS, description="The numbers of elements.")
    parameters: dict[DistributionName, dict[str, Parameter]] = Field(
        default_factory=dict,
        max_length=16,
        description="The parameters of each distribution that does not take its defaults.",
    )
    seed: int = Field(0, ge=0, lt=1 << 64, strict=True, description="Seed of the data.")
    permutations: int = Field(
        8, ge=0, le=64, strict=True, description="The number of random orders in which each method is repeated."
    )
    runs: int = Field(
        3,
        ge=1,
        le=64,
        strict=True,
        description="The number of runs in the given order; the bits of these runs are compared.",
    )
    backend: BackendName = Field(
        "auto",
        description="`auto` takes a GPU if there is one and a method runs on it; the host of the GPU then runs loops "
        "and NumPy.",
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

    def needs(self) -> str:
        if self.backend != "auto":
            return self.backend
        return GPU_FIRST if self.wants_gpu() else ANY

    def data_seed(self) -> int:
        return self.seed

    def moved(self, backend: BackendName) -> Mapping[str, Any]:
        return moved_from(self.backend, backend)

    def shortened(self, max_n: int) -> Mapping[str, Any]:
        return {"sizes": up_to(self.sizes, max_n)}

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        names = lists(stored, "ops", "dtypes", "distributions")
        return *names, span(stored.get("sizes")), *lists(stored, "methods")


Count = Annotated[int, Field(ge=0)]


class AccuracyPoint(Frozen):
    """The result of one method on one array. Its figures are null if the method was skipped or failed.

    An error compares `value` with the exact value, unless the description of the field names another value. Errors are
    computed in exact fractions. An infinite error is the string "inf".
    """

    method: str
    op: str
    distribution: str
    dtype: str
    n: Count = Field(description="The number of elements.")
    outcome: Outcome
    reason: str | None = Field(description="Why the point was skipped or failed.")
    value: JsonValue | None = Field(description="The value that the method gave.")
    hex: str | None = Field(description="The value as Python's float.hex prints it.")
    exact: JsonValue | None = Field(description="The true value, rounded once to float64.")
    exact_hex: str | None
    correctly_rounded: bool | None = Field(description="Whether the value is the true one, rounded once to its dtype.")
    absolute_error: JsonValue | None = Field(description="Absolute error: |value − true value|.")
    relative_error: JsonValue | None = Field(
        description='The absolute error ÷ |true value|. It is "inf" if the true value is 0 and the value is not.'
    )
    ulps: JsonValue | None = Field(
        description="The absolute error in units in the last place of the dtype at the true value."
    )
    condition: JsonValue | None = Field(
        description="The condition number: Σ|t| ÷ |Σt| over the terms t that the op adds. It is 1 for products."
    )
    bound: JsonValue | None = Field(
        description="The a-priori bound on the absolute error; null where no bound applies."
    )
    bound_formula: str | None = Field(
        description="The bound in words, in which u is the unit roundoff that the words name."
    )
    bound_verdict: BoundVerdict | None
    bound_reason: str | None = Field(description="Why the bound does not apply.")
    permutations: Count | None = Field(description="How many random orders were tried.")
    distinct_results: int | None = Field(
        description="How many different results the random orders gave, compared by their bits; null if no order "
        "was tried."
    )
    runs: Count | None = Field(description="How often the given order was run.")
    repeatable: bool | None = Field(description="Whether every run gave the same bits; null for a single run.")
    reference: JsonValue | None = Field(
        description="The value that the course report took for the truth: NumPy in float64."
    )
    reference_error: JsonValue | None = Field(
        description="|value − reference|. The course report gives this error for NumPy."
    )
    rounded_reference_error: JsonValue | None = Field(
        description="|value − reference rounded to the dtype|. The course report gives this error for its own "
        "loops. It is 0 if the true error is below one rounding."
    )
    reference_own_error: JsonValue | None = Field(
        description="The error of the reference itself: |reference − true value|. The reference is rounded, too."
    )
    how: str | None = Field(description="How and where the method was computed.")
    elapsed_ms: float | None = Field(
        description="The time of the quickest run by the host's clock, which is no benchmark."
    )


class AccuracyResult(Frozen):
    """The errors of every method on every array, in the order of the spec's lists."""

    study: Literal["accuracy"] = "accuracy"
    points: tuple[AccuracyPoint, ...]
    measured: int
    skipped: int = Field(
        description="How many points were not claimed, not installed, or too large; the point says which."
    )
    failed: int
    exceeded: int = Field(description="How many points have an error beyond their bound.")
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: StudyTimings
    provenance: Provenance
