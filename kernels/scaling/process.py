"""A process of a team: makes its crew, then does what it is told until nobody is there to tell it."""

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection

from kernels.errors import CudaError, InvalidInput, KernelError, OutOfMemory, Unavailable
from kernels.lifeline import end_with
from kernels.scaling.crew import Crew, Order, obey

Recruit = Callable[[], Crew]
"""Makes the crew, in its process. It travels there by pickle: a function of a module, or a `partial` of one."""


@dataclass(frozen=True, slots=True)
class Recruited:
    """The crew is there."""

    versions: tuple[tuple[str, str], ...]
    token: object


@dataclass(frozen=True, slots=True)
class Done:
    """The order was carried out."""

    answer: object


@dataclass(frozen=True, slots=True)
class Refused:
    """It could not be: a KernelError by its class's name, or anything else, which has none."""

    error: str | None
    sentence: str

    def as_error(self) -> KernelError:
        known = {kind.__name__: kind for kind in (CudaError, InvalidInput, OutOfMemory, Unavailable)}
        return known.get(self.error or "", KernelError)(self.sentence)


Answer = Recruited | Done | Refused


def rank_main(connection: Connection, recruit: Recruit, environment: Mapping[str, str | None], parent: int) -> None:
    """Body of the process. `environment` is set before any library is loaded that reads it; None removes a name."""
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    try:
        crew = recruit()
        connection.send(Recruited(crew.versions, crew.token))
        while True:
            order: Order = connection.recv()
            connection.send(Done(obey(crew, order)))
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
