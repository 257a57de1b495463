"""The stopping rule: sampling ends at a relative standard error that is small enough, or at a limit, which is
reported."""

import math
from dataclasses import dataclass
from enum import StrEnum

from warpfold.kernels.errors import InvalidInput


class Ending(StrEnum):
    """Why sampling stopped."""

    CONVERGED = "converged"
    TIME_LIMIT = "time_limit"
    SAMPLE_LIMIT = "sample_limit"


@dataclass(frozen=True, slots=True)
class Rule:
    """Sample until the relative standard error of the mean is at most `target_rse`, with `min_samples` or more.

    `max_samples` and `time_limit_s` (wall clock, for one case) end it earlier; at least one sample is taken.
    Raises InvalidInput naming the field.
    """

    target_rse: float = 0.005
    min_samples: int = 20
    max_samples: int = 10_000
    time_limit_s: float = 5.0

    def __post_init__(self) -> None:
        if not 0 < self.target_rse < 1:
            raise InvalidInput(
                "the relative standard error at which sampling ends must be between 0 and 1", "target_rse"
            )
        if self.min_samples < 2:
            raise InvalidInput("a standard error needs at least 2 samples", "min_samples")
        if self.max_samples < self.min_samples:
            raise InvalidInput("max_samples must not be less than min_samples", "max_samples")
        if not 0 < self.time_limit_s < math.inf:
            raise InvalidInput("the time limit is a number of seconds above 0", "time_limit_s")


class Spread:
    """Count, mean and variance of samples as they come (B. P. Welford, Technometrics 4, 1962, p. 419)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self._squares = 0.0  # Σ (x − mean)²

    def add(self, sample: float) -> None:
        self.count += 1
        step = sample - self.mean
        self.mean += step / self.count
        self._squares += step * (sample - self.mean)

    @property
    def variance(self) -> float:
        """The unbiased estimate, Σ (x − mean)² / (count − 1); infinite before there are two samples."""
        return self._squares / (self.count - 1) if self.count > 1 else math.inf

    @property
    def rse(self) -> float:
        """The relative standard error of the mean, s / (√count · mean); infinite before there are two samples."""
        if self.count < 2 or self.mean <= 0:
            return math.inf
        return math.sqrt(self.variance / self.count) / self.mean


def ending(rule: Rule, spread: Spread, elapsed_s: float) -> Ending | None:
    """Why to stop now, None to go on."""
    if spread.count >= rule.min_samples and spread.rse <= rule.target_rse:
        return Ending.CONVERGED
    if spread.count >= rule.max_samples:
        return Ending.SAMPLE_LIMIT
    if spread.count and elapsed_s >= rule.time_limit_s:
        return Ending.TIME_LIMIT
    return None
