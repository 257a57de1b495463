"""Workloads: reductions that are ready to run, on data that lies where they read it."""

from typing import Protocol

from warpfold.kernels.ops import Value


class Workload(Protocol):
    """A reduction that can be run again and again.

    `read_bytes` is what one run must read, declared, so that GB/s can be derived. `waits` says that `run` returns only
    when the result is there; otherwise it only hands the work to the device.
    """

    @property
    def read_bytes(self) -> int: ...

    @property
    def waits(self) -> bool: ...

    def run(self) -> None: ...

    def value(self) -> Value:
        """The value of the latest run, on the host."""
        ...
