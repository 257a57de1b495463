"""The ranks that live in one process, and what they are told to do.

A process is told one order after another, and so are all others of its team at the same time: within an order ranks
wait for each other.
"""

from dataclasses import dataclass
from typing import Protocol

from kernels.exact.state import ExactState
from kernels.scaling.axes import Method
from kernels.source import GeneratedSource


@dataclass(frozen=True, slots=True)
class Join:
    """Meet the other ranks. `token` is what the first process's `token` was."""

    token: object


@dataclass(frozen=True, slots=True)
class Load:
    """Make the part of `source` that is each rank's, get ready to reduce it, and warm up."""

    source: GeneratedSource
    method: Method


@dataclass(frozen=True, slots=True)
class Sample:
    """Reduce and add up so many times, every rank beginning at the same time with cold caches, and say how long it
    took: one `Timing` a run for each rank here."""

    runs: int


@dataclass(frozen=True, slots=True)
class Call:
    """The same so many times as a caller sees it: seconds by the wall clock until the value is on the host, as in the
    process of rank 0."""

    runs: int


@dataclass(frozen=True, slots=True)
class Collect:
    """What the last run came to: the sum that each rank here holds, as an exact state or, of floats, a number."""


@dataclass(frozen=True, slots=True)
class Piecewise:
    """The exact state that rank 0 gets by adding all of `source` piece by piece, with no help of others."""

    source: GeneratedSource


@dataclass(frozen=True, slots=True)
class Post:
    """Get ready to exchange messages of `nbytes`, and warm up."""

    nbytes: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """All-reduce `runs` messages back to back: seconds for one, for each rank here."""

    runs: int


@dataclass(frozen=True, slots=True)
class Check:
    """Whether every element that the ranks here received is the sum."""


Order = Join | Load | Sample | Call | Collect | Piecewise | Post | Exchange | Check


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one run by one rank's own clock: reducing its part, in the all-reduce (the wait for slower ranks
    included), and both together."""

    local: float
    communication: float
    total: float


Sum = ExactState | float
"""What ranks add up."""


class Crew(Protocol):
    """The ranks of one process."""

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """Of the libraries that carry messages: (name, version)."""
        ...

    @property
    def token(self) -> object:
        """What the other processes need to know before they can join; asked of the process of rank 0."""
        ...

    def join(self, token: object) -> None: ...

    def load(self, source: GeneratedSource, method: Method) -> None: ...

    def sample(self, runs: int) -> list[list[Timing]]:
        """For each rank here, one timing a run."""
        ...

    def call(self, runs: int) -> list[float]: ...

    def collect(self) -> list[Sum]:
        """Of each rank here."""
        ...

    def piecewise(self, source: GeneratedSource) -> ExactState: ...

    def post(self, nbytes: int) -> None: ...

    def exchange(self, runs: int) -> list[float]: ...

    def check(self) -> bool: ...


def obey(crew: Crew, order: Order) -> object:
    """Do what `order` says."""
    answer: object = None
    match order:
        case Join(token):
            crew.join(token)
        case Load(source, method):
            crew.load(source, method)
        case Sample(runs):
            answer = crew.sample(runs)
        case Call(runs):
            answer = crew.call(runs)
        case Collect():
            answer = crew.collect()
        case Piecewise(source):
            answer = crew.piecewise(source)
        case Post(nbytes):
            crew.post(nbytes)
        case Exchange(runs):
            answer = crew.exchange(runs)
        case Check():
            answer = crew.check()
    return answer
