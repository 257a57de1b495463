"""Workloads: reductions that are ready to run, on data that lies where they read it."""

from typing import Any, Protocol

from numpy.typing import NDArray

from warpfold.kernels.ops import Value


class Runnable(Protocol):
    """A reduction that can be run again and again, which is all that a clock needs.

    `read_bytes` is what one run must read, declared, so that GB/s can be derived. `waits` says that `run` returns only
    when the result is there; otherwise it only hands the work to the device.
    """

    @property
    def read_bytes(self) -> int: ...

    @property
    def waits(self) -> bool: ...

    def run(self) -> None: ...


class Workload(Runnable, Protocol):
    """A reduction to one value."""

    def value(self) -> Value:
        """The value of the latest run, on the host."""
        ...


class ShapedWorkload(Runnable, Protocol):
    """A reduction to many values. `read_bytes` counts the bytes of offsets, keys and values, too."""

    def values(self) -> NDArray[Any]:
        """The values of the latest run on the host, shape (values,): of a table those of keys 0, 1, …, and 0 where no
        row has the key."""
        ...
