"""Executors: strategies run on the slot's device, loops and the CPU's strategies on its host."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from numpy.typing import NDArray

from warpfold.kernels.accuracy.looped import how, looped
from warpfold.kernels.accuracy.methods import AccuracyMethod, method_named
from warpfold.kernels.accuracy.point import AccuracyCase
from warpfold.kernels.bench.target import BenchmarkTarget, open_target
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.source import ArraySource

Compute = Callable[[], float]
"""Computes a case on its arrays, again with every call."""


class Executor(Protocol):
    """Runs some of the methods."""

    def active(self) -> AbstractContextManager[None]:
        """A context to hold while anything is computed."""
        ...

    def computing(self, case: AccuracyCase, operands: tuple[NDArray[Any], ...]) -> Compute:
        """A call that computes `case` on `operands`, which are already where it runs; all code is compiled."""
        ...

    def how(self, case: AccuracyCase) -> str:
        """How and where it computes `case`, for people."""
        ...


class Executors:
    """The executors of a slot's backend. The host of a GPU is opened when a method first needs it."""

    def __init__(self, backend: Backend) -> None:
        self._device = _DeviceExecutor(backend, open_target(backend))
        self._loops = _LoopExecutor()

    @property
    def slot(self) -> str:
        """The slot's kind of backend: "cpu" or "cuda"."""
        return self._device.backend.device.backend

    def of(self, method: AccuracyMethod) -> Executor:
        """The executor of `method`. Raises Unavailable where the method needs another kind of slot."""
        if method.strategy is None:
            return self._loops
        if self.slot in method.backends:
            return self._device
        if "cpu" in method.backends:
            return self._host
        raise Unavailable(f"{method.name} runs on {' and '.join(method.backends)}, and this slot is of {self.slot}")

    @cached_property
    def _host(self) -> "_DeviceExecutor":
        from warpfold.kernels.cpu.backend import CpuBackend

        backend = CpuBackend()
        return _DeviceExecutor(backend, open_target(backend))


class _LoopExecutor:
    """The loops, on one thread of the host."""

    def active(self) -> AbstractContextManager[None]:
        return nullcontext()

    def computing(self, case: AccuracyCase, operands: tuple[NDArray[Any], ...]) -> Compute:
        dtype = dtype_named(case.dtype)
        looped(case.method, case.op, tuple(array[:2] for array in operands), dtype)  # compiles it
        return lambda: looped(case.method, case.op, operands, dtype)

    def how(self, case: AccuracyCase) -> str:
        return how(case.method, dtype_named(case.dtype))


@dataclass(frozen=True)
class _DeviceExecutor:
    """The strategies of a backend."""

    backend: Backend
    target: BenchmarkTarget

    def active(self) -> AbstractContextManager[None]:
        return self.target.active()

    def computing(self, case: AccuracyCase, operands: tuple[NDArray[Any], ...]) -> Compute:
        strategy, sources = _strategy(case), [ArraySource(array) for array in operands]
        few = [ArraySource(array[:1]) for array in operands]
        self.backend.reduce(few[0], case.op, strategy=strategy, other=few[1] if len(few) == 2 else None)  # compiles it
        if len(sources) == 2:
            first, other = sources
            return lambda: float(self.backend.reduce(first, case.op, strategy=strategy, other=other).value)
        workload = self.target.load(sources[0]).workload(case.op, strategy)

        def compute() -> float:
            workload.run()
            return float(workload.value())

        return compute

    def how(self, case: AccuracyCase) -> str:
        return f"strategy {_strategy(case)} on {self.backend.device.name}"


def _strategy(case: AccuracyCase) -> str:
    strategy = method_named(case.method).strategy
    assert strategy is not None, f"{case.method} is a loop"
    return strategy
