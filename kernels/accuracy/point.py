"""The case of one method on one array: its result, the error of that, and the bound that held beforehand."""

from dataclasses import dataclass
from enum import StrEnum

from warpfold.kernels.studies.outcome import Outcome


class BoundVerdict(StrEnum):
    """Whether an error stayed within its a-priori bound, or why there is no such bound."""

    HELD = "held"
    EXCEEDED = "exceeded"
    NOT_APPLICABLE = "not_applicable"  # its premises do not hold: overflow, underflow, too many elements for the dtype


@dataclass(frozen=True, slots=True)
class AccuracyCase:
    """One combination: `method` reduces `n` elements of `distribution` in `dtype` by `op`."""

    method: str
    op: str
    distribution: str
    dtype: str
    n: int


@dataclass(frozen=True, slots=True)
class AccuracyFigures:
    """The figures of a case. All errors are of `value` and, where no other is named, against the exact value.

    `exact` is the true value rounded once to float64; errors are computed before that, in exact fractions, and then
    rounded. `relative_error` and `condition` (Σ|t| ÷ |Σt| over the terms t that the op adds) are infinite where the
    true value is 0 and they are not. `ulps` counts units in the last place of the result's dtype at the true value.
    `bound` is the bound on the absolute error that `bound_formula` spells out. `distinct_results` is over
    `permutations` random orders, None for none, `repeatable` over `runs` runs in the given order, None for one, both by
    the bits. `elapsed_ms` is the quickest of the runs, on the host's clock.

    `reference` is the value that the course report compared with, NumPy in float64, `reference_error` = |value −
    reference|, `reference_own_error` the reference's own; `rounded_reference_error` is against the reference rounded to
    the dtype, where a method that is wrong by less than a rounding shows an error of 0, as some in the report do.
    """

    value: float
    exact: float
    correctly_rounded: bool
    absolute_error: float
    relative_error: float
    ulps: float
    condition: float
    bound: float | None
    bound_formula: str
    bound_verdict: BoundVerdict
    bound_reason: str | None
    permutations: int
    distinct_results: int | None
    runs: int
    repeatable: bool | None
    reference: float
    reference_error: float
    rounded_reference_error: float
    reference_own_error: float
    how: str
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class StudiedCase:
    """A case and its outcome; `reason` says why a case has no figures."""

    case: AccuracyCase
    outcome: Outcome
    reason: str | None = None
    measured: AccuracyFigures | None = None
