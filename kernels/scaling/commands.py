"""Commands to the ranks of a process.

All processes of a group get the same command at the same time, one command after another: within a command ranks wait
for each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from warpfold.kernels.scaling.axes import Method
from warpfold.kernels.scaling.local_ranks import LocalRanks
from warpfold.kernels.source import GeneratedSource


@dataclass(frozen=True, slots=True)
class Join:
    """Meet the other ranks. `tokens` are those of all processes, in the order of ranks. The answer is the carrier of
    sums, None for a rank that is alone."""

    tokens: Sequence[object]


@dataclass(frozen=True, slots=True)
class Load:
    """Make the part of `source` that is each rank's, get ready to reduce it, and warm up."""

    source: GeneratedSource
    method: Method


@dataclass(frozen=True, slots=True)
class Sample:
    """Reduce and add up so many times, every rank beginning at the same time with cold caches. The answer has one
    `Timing` a run for each rank of the process."""

    runs: int


@dataclass(frozen=True, slots=True)
class Call:
    """The same so many times as a caller sees it. The answer is the seconds by the wall clock until the value is on the
    host, in the process of rank 0."""

    runs: int


@dataclass(frozen=True, slots=True)
class Collect:
    """The result of the last run: the sum that each rank of the process holds, as an exact state or, for floats, a
    number."""


@dataclass(frozen=True, slots=True)
class Piecewise:
    """The exact state that rank 0 gets by adding all of `source` piece by piece, alone."""

    source: GeneratedSource


@dataclass(frozen=True, slots=True)
class PrepareMessage:
    """Get ready to exchange messages of `nbytes`, and warm up."""

    nbytes: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """All-reduce `runs` messages back to back. The answer is the seconds of one message, for each rank of the
    process."""

    runs: int


@dataclass(frozen=True, slots=True)
class CheckMessage:
    """Check whether every element that the ranks of the process received is the sum."""


Command = Join | Load | Sample | Call | Collect | Piecewise | PrepareMessage | Exchange | CheckMessage


def carry_out(ranks: LocalRanks, command: Command) -> object:
    """Have `ranks` do what `command` says; their answer."""
    answer: object = None
    match command:
        case Join(tokens):
            answer = ranks.join(tokens)
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
