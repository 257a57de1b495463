"""A process of a group: it makes its ranks, then carries out commands until its parent closes the connection."""

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection

from warpfold.kernels.errors import CudaError, InvalidInput, KernelError, OutOfMemory, Unavailable
from warpfold.kernels.machine.parent_death import end_with
from warpfold.kernels.scaling.commands import Command, carry_out
from warpfold.kernels.scaling.local_ranks import LocalRanks

MakeRanks = Callable[[], LocalRanks]
"""Makes the ranks of a process, in it. It travels there by pickle: a function of a module, or a `partial` of one."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The ranks of the process are ready."""

    versions: tuple[tuple[str, str], ...]
    token: object


@dataclass(frozen=True, slots=True)
class Done:
    """A command was carried out."""

    answer: object


@dataclass(frozen=True, slots=True)
class Refused:
    """A command failed: `error` is the class's name of a KernelError, and None for any other error."""

    error: str | None
    sentence: str

    def as_error(self) -> KernelError:
        known = {kind.__name__: kind for kind in (CudaError, InvalidInput, OutOfMemory, Unavailable)}
        return known.get(self.error or "", KernelError)(self.sentence)


Answer = Ready | Done | Refused


def rank_main(
    connection: Connection, make_ranks: MakeRanks, environment: Mapping[str, str | None], parent: int
) -> None:
    """Body of the process. `environment` is set before any library is loaded that reads it; None removes a name."""
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    try:
        ranks = make_ranks()
        connection.send(Ready(ranks.versions, ranks.token))
        while True:
            command: Command = connection.recv()
            connection.send(Done(carry_out(ranks, command)))
    except EOFError:
        return
    except Exception as error:
        connection.send(_refusal(error))


def _refusal(error: Exception) -> Refused:
    match error:
        case KernelError():
            return Refused(type(error).__name__, str(error))
        case MemoryError():
            return Refused(OutOfMemory.__name__, "the data does not fit in this host's memory")
        case _:
            return Refused(None, f"{type(error).__name__}: {error}")
