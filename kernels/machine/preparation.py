"""The steps before a backend can time anything: compile kernels, load them, start them a first time."""

import threading
import time
from collections.abc import Hashable
from functools import cache


class Preparation:
    """Counts the time in which at least one thread is in `with preparation:`; nested blocks count once.

    `total_ms` is the sum so far, in milliseconds of the host's clock. `ready` names what need not be prepared again.
    """

    def __init__(self) -> None:
        self.ready: set[Hashable] = set()
        self._lock = threading.Lock()
        self._total_ns = 0
        self._depth = 0
        self._began_ns = 0

    @property
    def total_ms(self) -> float:
        return self._total_ns / 1e6

    def working_s(self) -> float:
        """A clock that stands still within the blocks, in seconds. So the times of loading and of reducing hold no time
        of compiling, wherever a function is called first. The clock never goes back."""
        with self._lock:
            return ((self._began_ns if self._depth else time.perf_counter_ns()) - self._total_ns) / 1e9

    def __enter__(self) -> None:
        with self._lock:
            if not self._depth:
                self._began_ns = time.perf_counter_ns()
            self._depth += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._total_ns += time.perf_counter_ns() - self._began_ns


@cache
def of_process() -> Preparation:
    """The preparation of all functions that Numba compiles or loads in this process (`kernels.machine.jit`)."""
    return Preparation()


def working_s() -> float:
    """The seconds of `time.perf_counter`, less those in which this process compiled or loaded a function."""
    return of_process().working_s()


def prepared_ms(device: Preparation) -> float:
    """The milliseconds that went into the kernels of a `device`, and into the functions of this process that read for
    it, such as those for text."""
    return device.total_ms + of_process().total_ms
