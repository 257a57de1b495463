"""What every baseline comes to: one reduction of one array on the GPU, to be run again and again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from warpfold.kernels.catalog import Strategy
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op, Value


class Bound(Protocol):
    """A reduction of an array, with its workspace. `waits`: `run` returns only when the result is there."""

    @property
    def waits(self) -> bool: ...

    def run(self) -> None:
        """Put one reduction on the GPU's stream; to be called while `gpu.active()`."""
        ...

    def value(self) -> Value:
        """Of the latest run."""
        ...


Bind = Callable[[Gpu, Op, DType, Any], Bound]
"""Makes a Bound for a CuPy array of dtype `staging.feed.carrier(dtype)`, one dimension, at least one element."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A peer: its catalogue row and how to bind it. Binding raises Unavailable where the row says it is missing."""

    row: Strategy
    bind: Bind
