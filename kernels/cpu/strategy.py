"""The interface of every strategy on a CPU."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from warpfold.kernels.backend import Progress, Reduction
from warpfold.kernels.ops import NanPolicy, Op
from warpfold.kernels.ops.operands import Operands
from warpfold.kernels.source import ArraySource, Source
from warpfold.kernels.sources.sequential import Elements, SequentialSource
from warpfold.kernels.strategy import Strategy


@dataclass(frozen=True, kw_only=True)
class CpuStrategy(Strategy, ABC):
    """A way to reduce on a CPU. Making one compiles nothing."""

    backend: str = "cpu"
    interprets: bool = False
    """Whether `reduce` can do without compiled functions."""

    @abstractmethod
    def reduce(
        self,
        operands: Operands,
        op: Op,
        nan_policy: NanPolicy,
        progress: Progress | None,
        *,
        compiled: bool = True,
    ) -> Reduction:
        """Reduce operands that fit `op`; unless `compiled` without compiled functions. Raises a KernelError."""

    def prepare(self, operands: Operands, op: Op) -> None:
        """Compile or load every function that a reduction of `operands` calls. To do so, a single element is reduced:
        it has the same types of arguments as all elements."""
        first = Operands(first_of(operands.source), None if operands.other is None else first_of(operands.other))
        self.reduce(first, op, NanPolicy.PROPAGATE, None)


def first_of(source: Elements) -> Source:
    """The first element of `source`, read as the whole source will be; the number 1 for a source that can be read only
    once."""
    if isinstance(source, SequentialSource):
        return ArraySource(np.ones(1, dtype=source.dtype.numpy))
    return ArraySource(source.read(0, 1))
