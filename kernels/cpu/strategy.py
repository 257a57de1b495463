"""The interface of every strategy on a CPU."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from warpfold.kernels.backend import Progress, Reduction
from warpfold.kernels.operands import Operands
from warpfold.kernels.ops import NanPolicy, Op
from warpfold.kernels.strategy import Strategy


@dataclass(frozen=True, kw_only=True)
class CpuStrategy(Strategy, ABC):
    """A way to reduce on a CPU. Making one compiles nothing."""

    backend: str = "cpu"

    @abstractmethod
    def reduce(self, operands: Operands, op: Op, nan_policy: NanPolicy, progress: Progress | None) -> Reduction:
        """Reduce operands that fit `op`. Raises a KernelError."""
