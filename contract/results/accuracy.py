"""The results of an accuracy study and of three numbers, as stored and as served."""

from typing import Annotated, Literal

from pydantic import Field

from warpfold.contract.frozen import Frozen
from warpfold.contract.json_value import JsonValue
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.timings import StudyTimings
from warpfold.kernels.accuracy.point import BoundVerdict
from warpfold.kernels.outcome import Outcome

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


class OrderView(Frozen):
    """One way to add three numbers: which two first."""

    expression: str = Field(description='such as "(a + b) + c"')
    inner: JsonValue = Field(description="what the brackets gave")
    inner_hex: str
    value: JsonValue
    hex: str
    absolute_error: JsonValue
    relative_error: JsonValue = Field(description="inf for a true value of 0")


class ThreeNumbersResult(Frozen):
    """Three numbers added in every order and both ways to set brackets."""

    study: Literal["three_numbers"] = "three_numbers"
    dtype: str
    a: JsonValue = Field(description="rounded to the dtype, as b and c")
    b: JsonValue
    c: JsonValue
    exact: JsonValue = Field(description="the true sum of the three, rounded once to the dtype")
    exact_hex: str
    orders: tuple[OrderView, ...]
    distinct_values: int = Field(description="of the sums; 1 if addition were associative here")
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: StudyTimings
    provenance: Provenance
