"""Baselines: each binds one array on the GPU to a reduction that can be run again and again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.strategies.strategy import Finished, PeerStrategy
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Op, Value
from warpfold.kernels.ops.operands import Operands


class BoundReduction(Protocol):
    """A reduction of one array, with its workspace. With `waits`, `run` returns only when the result is ready."""

    @property
    def waits(self) -> bool: ...

    def run(self) -> None:
        """Put one reduction on the GPU's stream; to be called while `gpu.active()`."""
        ...

    def value(self) -> Value:
        """The value of the latest run."""
        ...


Bind = Callable[[Gpu, Op, DType, Any], BoundReduction]
"""Makes a Bound for a CuPy array of dtype `elements.carrier(dtype)`, one dimension, at least one element."""


@dataclass(frozen=True, kw_only=True)
class Baseline(PeerStrategy):
    """A peer that Warpfold is measured against. Binding raises Unavailable where `missing` says why."""

    bind: Bind

    def start(self, gpu: Gpu, op: Op, taken: Operands, *, pieces: int = 1, omit_nan: bool = False) -> "BaselineReducer":
        if omit_nan:
            raise InvalidInput(f"strategy {self.name} cannot leave NaN out", "nan_policy")
        return BaselineReducer(gpu, self, op, taken.source.dtype)

    def workload(self, gpu: Gpu, op: Op, dtype: DType, array: Any) -> "BaselineWorkload":
        return BaselineWorkload(self.bind(gpu, op, dtype, array), array)


class BaselineReducer:
    """One reduction by a peer of one array that holds all elements."""

    def __init__(self, gpu: Gpu, baseline: Baseline, op: Op, dtype: DType) -> None:
        self._gpu, self._baseline, self._op, self._dtype = gpu, baseline, op, dtype
        self._bound: BoundReduction | None = None

    def add(self, arrays: Sequence[Any], first: int) -> None:
        (array,) = arrays
        assert first == 0
        assert self._bound is None
        self._bound = self._baseline.bind(self._gpu, self._op, self._dtype, array)
        self._bound.run()

    def omitted(self) -> None:
        """None, because a peer leaves nothing out."""

    def finish(self, count: int) -> Finished:
        assert self._bound is not None
        return Finished(self._bound.value(), not self._op.rounds)  # nothing is proved about how a peer adds


class BaselineWorkload:
    """A peer as a workload of a benchmark."""

    def __init__(self, bound: BoundReduction, array: Any) -> None:
        self._bound = bound
        self.waits = bound.waits
        self.read_bytes = int(array.nbytes)
        self.run: Callable[[], None] = bound.run

    def value(self) -> Value:
        with cuda_errors("reading the value"):
            return self._bound.value()
