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
from warpfold.kernels.outcome import Outcome
from warpfold.kernels.source import GeneratedSource

MAX_SIZE = 1 << 32


def _known(name: str) -> str:
    return method_named(name).name


def _offer(schema: JsonDict) -> None:
    schema["enum"] = list(methods())


MethodName = Annotated[str, AfterValidator(_known), Field(json_schema_extra=_offer)]
Size = Annotated[int, Field(ge=1, le=MAX_SIZE, strict=True)]


class AccuracySpec(Task):
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
    """One method on one array. The figures are null where it was skipped or failed.

    Errors are of `value` and, where no other is named, against the exact value; they are computed in exact fractions.
    What is infinite is the string "inf".
    """

    method: str
    op: str
    distribution: str
    dtype: str
    n: Count = Field(description="elements")
    outcome: Outcome
    reason: str | None = Field(description="why it was skipped or failed")
    value: JsonValue | None = Field(description="what the method gave")
    hex: str | None = Field(description="what Python's float.hex of the value prints")
    exact: JsonValue | None = Field(description="the true value, rounded once to float64")
    exact_hex: str | None
    correctly_rounded: bool | None = Field(description="the value is the true one rounded once to its dtype")
    absolute_error: JsonValue | None = Field(description="|value − true value|")
    relative_error: JsonValue | None = Field(description="absolute error ÷ |true value|; inf for a true value of 0")
    ulps: JsonValue | None = Field(description="absolute error in units in the last place of the dtype at the truth")
    condition: JsonValue | None = Field(description="Σ|t| ÷ |Σt| of the terms t that the op adds; 1 for products")
    bound: JsonValue | None = Field(description="a-priori bound on the absolute error; null where none applies")
    bound_formula: str | None = Field(description="the bound in words, u being the unit roundoff it names")
    bound_verdict: BoundVerdict | None
    bound_reason: str | None = Field(description="why the bound does not apply")
    permutations: Count | None = Field(description="random orders that were tried")
    distinct_results: int | None = Field(description="different bits over the permutations; null for none tried")
    runs: Count | None = Field(description="of the given order")
    repeatable: bool | None = Field(description="every run gave the same bits; null for one run")
    reference: JsonValue | None = Field(description="what the course report took for the truth: NumPy in float64")
    reference_error: JsonValue | None = Field(description="|value − reference|, as the report gives it for NumPy")
    rounded_reference_error: JsonValue | None = Field(
        description="|value − reference rounded to the dtype|, as the report gives it for its own loops: 0 where the "
        "true error is below a rounding"
    )
    reference_own_error: JsonValue | None = Field(description="|reference − true value|: the reference is rounded too")
    how: str | None = Field(description="how and where the method was computed")
    elapsed_ms: float | None = Field(description="the quickest run, on the host's clock; no benchmark")


class AccuracyResult(Frozen):
    """How far every method is from the truth on every array, in the order of the spec's lists."""

    study: Literal["accuracy"] = "accuracy"
    points: tuple[AccuracyPoint, ...]
    measured: int
    skipped: int = Field(description="not claimed, not installed, or too large: the point says which")
    failed: int
    exceeded: int = Field(description="points whose error is beyond their bound")
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: StudyTimings
    provenance: Provenance
