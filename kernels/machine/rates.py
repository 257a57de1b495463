"""How fast a slot is, measured in steps that are short enough for the pauses between jobs.

Each rate is the fastest of several passes: what else the machine does makes a pass slower, and none faster.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.source import ArraySource, FileBytes, GeneratedSource

STEP_S = 0.1
"""How long passes are repeated. A step takes as long again at most to make what it reads."""

_FLOAT64 = DTYPES["float64"]
_LEAST_BYTES = 1 << 26
_MOST_BYTES = 1 << 28
_BYTES_A_CORE = 1 << 24  # two pieces of a mapped file
_MADE_ON_CPU = 1 << 23
_MADE_ON_GPU = 1 << 29  # one piece
_SMALL = 1000


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast a slot reduces: from a file in the page cache to its sum, over the bus (None where nothing is copied),
    in the memory of the device, and of elements that are made there, in 1e9 bytes a second; and the seconds that a
    reduction of a thousand elements takes."""

    read_gb_per_s: float
    copy_gb_per_s: float | None
    reduce_gb_per_s: float
    generate_gb_per_s: float
    overhead_s: float


@runtime_checkable
class Copying(Protocol):
    """A backend whose device has memory of its own."""

    def copy_seconds(self, nbytes: int) -> Callable[[], float]:
        """A pass that copies `nbytes` from pinned memory to the device, and returns the seconds that this took."""
        ...


def measure(backend: Backend) -> Iterator[Rates | None]:
    """Measure the rates of a slot: None after each step, and the rates after the last. Raises what reductions raise,
    and OSError where no temporary file can be written."""
    overhead_s = _overhead(backend)
    yield None
    read = _read(backend, overhead_s)
    yield None
    copy = _rate(_copied(backend)) if isinstance(backend, Copying) else None
    yield None
    reduce = _reduced(backend)
    yield None
    yield Rates(read, copy, reduce, _generated(backend), overhead_s)


def _overhead(backend: Backend) -> float:
    values = ArraySource(np.ones(_SMALL))
    backend.reduce(values, "sum")  # kernels are loaded by the first
    passes: list[float] = []
    until = time.perf_counter() + STEP_S / 2
    while time.perf_counter() < until or len(passes) < 3:
        began = time.perf_counter()
        backend.reduce(values, "sum")
        passes.append(time.perf_counter() - began)
    return statistics.median(passes)


def _read(backend: Backend, overhead_s: float) -> float:
    nbytes = min(_MOST_BYTES, max(_LEAST_BYTES, usable_cores() * _BYTES_A_CORE))
    if isinstance(backend, Copying):
        nbytes = _MOST_BYTES
    part = np.ones(_LEAST_BYTES // 8)
    with tempfile.TemporaryFile(prefix="warpfold-rates-") as file:
        for _ in range(nbytes // part.nbytes):
            file.write(part.data)
        file.flush()

        def passed() -> float:
            # Mapped anew, as each job maps its file: pages that were touched before cost nothing.
            array = np.memmap(file, dtype=np.float64, mode="r", shape=(nbytes // 8,))
            source = ArraySource(array, FileBytes(file.fileno(), 0))
            began = time.perf_counter()
            backend.reduce(source, "sum")
            return max(time.perf_counter() - began - overhead_s, 1e-6)

        return _rate((nbytes, passed))


def _copied(backend: Copying) -> tuple[int, Callable[[], float]]:
    return _MOST_BYTES, backend.copy_seconds(_MOST_BYTES)


def _reduced(backend: Backend) -> float:
    # A GPU tells the time of its kernel alone, so that elements may as well be made there.
    held = _made(_MADE_ON_GPU) if isinstance(backend, Copying) else ArraySource(np.ones(_LEAST_BYTES // 8))
    backend.reduce(held, "sum")
    return _rate((held.count * 8, lambda: max(backend.reduce(held, "sum").kernel_ms / 1e3, 1e-9)))


def _generated(backend: Backend) -> float:
    made = _made(_MADE_ON_GPU if isinstance(backend, Copying) else _MADE_ON_CPU)

    def passed() -> float:
        began = time.perf_counter()
        backend.reduce(made, "sum")
        return time.perf_counter() - began

    return _rate((made.count * 8, passed))


def _made(nbytes: int) -> GeneratedSource:
    return GeneratedSource("normal", nbytes // 8, 0, _FLOAT64)


def _rate(work: tuple[int, Callable[[], float]]) -> float:
    """GB/s of the fastest of the passes that fit a step; of two at least."""
    nbytes, passed = work
    until = time.perf_counter() + STEP_S
    passes = [passed(), passed()]
    while time.perf_counter() < until:
        passes.append(passed())
    return nbytes / min(passes) / 1e9
