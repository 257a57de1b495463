"""The work that tests give to a child: real work of real processes, without a device."""

import ctypes
import json
import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.measurement import Measurement
from warpfold.kernels.errors import CudaError, InvalidInput, OutOfMemory, Unavailable
from warpfold.worker.messages import Opener, Progress, Tell, Timed

_POINT = Measurement(
    kind="reduce",
    op="sum",
    dtype="float64",
    strategy="exact",
    backend="cpu",
    device="actor",
    n=1,
    bytes=8,
    samples=1,
    load_ms=0.0,
    kernel_ms=0.0,
    correctly_rounded=True,
)


@dataclass
class Actor:
    """Does what the first word after "do" says, with the rest as argument: {"do": "sleep 1"}."""

    device: Mapping[str, object]

    def run(self, lease: Lease, tell: Tell) -> Success:
        word, _, rest = str(json.loads(lease.spec)["do"]).partition(" ")
        _PARTS[word](rest, tell)
        result = {"pid": os.getpid(), "said": math.nan if rest == "nan" else rest}
        timings = {"timings": {"queued_ms": lease.queued_ms, "total_ms": 1.0}} if word == "note" else {}
        return Success({**result, **timings}, (_POINT,))


def opened(device: Mapping[str, object]) -> Actor:
    return Actor(device)


def actor() -> Opener:
    """Opens at once."""
    return partial(opened, {"backend": "cpu", "name": "actor"})


def note(notes: Path) -> None:
    """Leave a line that says in which process this took place."""
    with notes.open("a") as lines:
        lines.write(f"{os.getpid()}\n")


def opened_with_a_note(notes: Path) -> Actor:
    note(notes)
    return Actor({"backend": "cpu", "name": "actor"})


@dataclass
class Meter(Actor):
    """An actor whose slot has one rate, its process id, which takes a step to measure."""

    rates: Mapping[str, object] | None = None

    def measuring(self) -> Iterator[None]:
        self.rates = {"measured_by": os.getpid()}
        yield


def opened_with_rates() -> Meter:
    return Meter({"backend": "cpu", "name": "meter"})


def prepare_nothing() -> None:
    pass


def prepare_forever() -> None:
    time.sleep(3600)


def prepare_and_exit() -> None:
    os._exit(3)


def open_without_gpu() -> Actor:
    raise Unavailable("no GPU is visible to this process")


def open_and_exit() -> Actor:
    os._exit(3)


def open_slowly() -> Actor:
    time.sleep(60)
    return Actor({})


def _say(rest: str, tell: Tell) -> None:
    pass


def _note(rest: str, tell: Tell) -> None:
    note(Path(rest))


def _note_and_sleep(rest: str, tell: Tell) -> None:
    note(Path(rest))
    time.sleep(60)


def _sleep(rest: str, tell: Tell) -> None:
    time.sleep(float(rest))


def _deafly_sleep(rest: str, tell: Tell) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(float(rest))


def _compute(rest: str, tell: Tell) -> None:
    """In one step of the interpreter, during which no other thread of the process can run."""
    3 ** int(rest)


def _stop(rest: str, tell: Tell) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _freeze(rest: str, tell: Tell) -> None:
    """Wait in machine code that keeps the interpreter's lock."""
    ctypes.PyDLL(None).sleep(int(rest))


def _count(rest: str, tell: Tell) -> None:
    for step in range(int(rest)):
        tell(Progress(step, int(rest), "steps"))
        time.sleep(0.001)


def _halt(rest: str, tell: Tell) -> None:
    """Report progress at once, and then nothing for long."""
    for step in range(int(rest) + 1):
        tell(Progress(step, int(rest), "steps"))
    time.sleep(60)


def _take_times(rest: str, tell: Tell) -> None:
    tell(Timed())


def _exit(rest: str, tell: Tell) -> None:
    os._exit(int(rest))


def _signal(rest: str, tell: Tell) -> None:
    os.kill(os.getpid(), int(rest))
    time.sleep(10)


def _raise(rest: str, tell: Tell) -> None:
    errors = {
        "input": InvalidInput("the input is odd"),
        "memory": OutOfMemory("the array does not fit"),
        "host-memory": MemoryError(),
        "cuda": CudaError("CUDA_ERROR_ILLEGAL_ADDRESS"),
        "bug": RuntimeError("secret detail"),
    }
    raise errors[rest]


_PARTS: dict[str, Callable[[str, Tell], None]] = {
    "say": _say,
    "note": _note,
    "note-and-sleep": _note_and_sleep,
    "sleep": _sleep,
    "deafly-sleep": _deafly_sleep,
    "compute": _compute,
    "stop": _stop,
    "freeze": _freeze,
    "count": _count,
    "halt": _halt,
    "take-times": _take_times,
    "exit": _exit,
    "signal": _signal,
    "raise": _raise,
}
