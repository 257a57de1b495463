"""The ranks that live in one process."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.scaling.axes import Carrier, Method
from warpfold.kernels.source import GeneratedSource


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one run by one rank's own clock: reducing its part, in the all-reduce (the wait for slower ranks
    included), and both together. The clock of a GPU slows a run that it times in parts, so there `total` is of a run of
    its own."""

    local: float
    communication: float
    total: float


Sum = ExactState | float
"""The values that ranks add up."""


class LocalRanks(Protocol):
    """The ranks of one process."""

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """The names and versions of the libraries that carry messages."""
        ...

    @property
    def token(self) -> object:
        """What the other processes need of this one before they can join."""
        ...

    def join(self, tokens: Sequence[object]) -> Carrier | None:
        """Meet the ranks of all processes, whose `tokens` come in their order; what carries sums, None for a rank that
        is alone."""
        ...

    def load(self, source: GeneratedSource, method: Method) -> None: ...

    def sample(self, runs: int) -> list[list[Timing]]:
        """A list for each rank of this machine, with one timing a run."""
        ...

    def call(self, runs: int) -> list[float]: ...

    def collect(self) -> list[Sum]:
        """The sum that each rank here holds."""
        ...

    def piecewise(self, source: GeneratedSource) -> ExactState: ...

    def prepare_message(self, nbytes: int) -> None: ...

    def exchange(self, runs: int) -> list[float]: ...

    def check(self) -> bool: ...
