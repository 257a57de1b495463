"""What the ranks of a process are told to do.

A process is given one command after another, and so are all others of its group at the same time: within a command
ranks wait for each other.
"""

from dataclasses import dataclass

from warpfold.kernels.scaling.axes import Method
from warpfold.kernels.scaling.local_ranks import LocalRanks
from warpfold.kernels.source import GeneratedSource


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
class PrepareMessage:
    """Get ready to exchange messages of `nbytes`, and warm up."""

    nbytes: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """All-reduce `runs` messages back to back: seconds for one, for each rank here."""

    runs: int


@dataclass(frozen=True, slots=True)
class CheckMessage:
    """Whether every element that the ranks here received is the sum."""


Command = Join | Load | Sample | Call | Collect | Piecewise | PrepareMessage | Exchange | CheckMessage


def carry_out(ranks: LocalRanks, command: Command) -> object:
    """Have `ranks` do what `command` says; their answer."""
    answer: object = None
    match command:
        case Join(token):
            ranks.join(token)
        case Load(source, method):
            ranks.load(source, method)
        case Sample(runs):
            answer = ranks.sample(runs)
        case Call(runs):
            answer = ranks.call(runs)
        case Collect():
            answer = ranks.collect()
        case Piecewise(source):
            answer = ranks.piecewise(source)
        case PrepareMessage(nbytes):
            ranks.prepare_message(nbytes)
        case Exchange(runs):
            answer = ranks.exchange(runs)
        case CheckMessage():
            answer = ranks.check()
    return answer
