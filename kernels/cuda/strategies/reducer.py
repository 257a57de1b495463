"""How each kind of strategy reduces pieces on the GPU: our own kernels, the exact accumulator, CuPy."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.strategies.outcomes import WORDS, Outcome, of_integer, value_of
from warpfold.kernels.cuda.strategies.own import OwnStrategy
from warpfold.kernels.cuda.strategies.reductions import reduction_of
from warpfold.kernels.cuda.strategies.tuning import suited
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.exact.state import ExactState, Flags
from warpfold.kernels.ops import Op, Value

PARTIAL_BYTES = 32
"""No accumulator is larger."""

STATE_BYTES = 48
"""Of a block: the largest accumulator that blocks send each other, of 24 bytes, with its flags."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A value, whether it is proved to be correctly rounded, and the exact state where there was one."""

    value: Value
    correctly_rounded: bool
    state: ExactState | None = None


class Method(Protocol):
    """One reduction under way. `add` puts work on the GPU's stream and returns; `finish` waits for it."""

    def add(self, array: Any, first: int) -> None:
        """Take in a CuPy array of one dimension whose first element has index `first`."""
        ...

    def finish(self, count: int) -> Finished:
        """The value over `count` ≥ 1 elements, those left out not counted."""
        ...


class OwnMethod:
    """A reduction by kernels of our own. `pieces` is the most arrays that will be added."""

    def __init__(
        self, gpu: Gpu, strategy: OwnStrategy, op: Op, dtype: DType, *, pieces: int = 1, omit_nan: bool = False
    ) -> None:
        import cupy

        if not strategy.runs_on(gpu.arch):
            raise Unavailable(f"strategy {strategy.name} needs sm_{strategy.needs} or newer; {gpu.name} is {gpu.arch}")
        self._gpu, self._strategy, self._op, self._dtype = gpu, strategy, op, dtype
        self._omit_nan = np.uint32(omit_nan)
        self._launch = suited(strategy.launch, op, dtype)
        unit = strategy.unit(dtype)
        names = list(strategy.kernels(reduction_of(op, dtype), dtype))
        kernels = [gpu.kernel(unit, name, cooperative=self._launch.cooperative) for name in names]
        self._begin = kernels.pop(0) if strategy.begins else None
        self._fold = kernels.pop() if strategy.folds else None
        (self._main,) = kernels
        self._resident = self._main.blocks_per_multiprocessor(self._launch.threads) * gpu.multiprocessors
        self._outcomes = cupy.zeros((pieces, WORDS), dtype=np.uint64)
        self._partials = self._folded = self._state = cupy.empty(0, dtype=np.uint8)
        self._firsts: list[int] = []

    def add(self, array: Any, first: int) -> None:
        blocks, threads = self._launch.shape(array.size, self._dtype.itemsize, self._gpu.multiprocessors)
        # Blocks come in one wave, or in many: a second would start when the first is all but done.
        if blocks <= self._launch.blocks_per_multiprocessor * self._gpu.multiprocessors:
            blocks = min(blocks, self._resident // self._launch.cluster * self._launch.cluster)
        self._make_room(blocks)
        outcome = self._outcomes[len(self._firsts)]
        self._firsts.append(first)
        if self._begin is not None:
            self._begin(1, 1, (self._partials,))
        self._main(
            blocks,
            threads,
            (
                array,
                np.uint64(array.size),
                np.uint64(first),
                self._omit_nan,
                self._partials,
                self._state,
                outcome,
            ),
        )
        if self._fold is not None:
            self._fold_partials(blocks, outcome)

    def _fold_partials(self, count: int, outcome: Any) -> None:
        tile = self._launch.tile or count
        source, target = self._partials, self._folded
        while True:
            blocks = -(-count // tile)
            assert self._fold is not None
            self._fold(blocks, self._launch.threads, (source, np.uint64(count), target, outcome))
            if blocks == 1:
                return
            source, target, count = target, source, blocks

    def _make_room(self, blocks: int) -> None:
        import cupy

        nbytes = blocks * PARTIAL_BYTES
        if self._partials.size < nbytes:
            self._partials = cupy.empty(nbytes, dtype=np.uint8)
            self._state = cupy.zeros(blocks * STATE_BYTES, dtype=np.uint8)
            self._folded = cupy.empty(nbytes if self._fold is not None else 1, dtype=np.uint8)

    def outcomes(self) -> list[Outcome]:
        """What was left of each array so far; waits for the work."""
        words = self._outcomes.get()
        return [Outcome(words[k], first) for k, first in enumerate(self._firsts)]

    def finish(self, count: int) -> Finished:
        return Finished(value_of(self._op, self._dtype, self.outcomes(), count), self._op.proved(self._dtype))


class ExactIntegers:
    """Sums of integers and truth values, exact in any strategy of our own, with their state."""

    def __init__(self, method: OwnMethod, op: Op) -> None:
        self._method, self._op = method, op

    def add(self, array: Any, first: int) -> None:
        self._method.add(array, first)

    def finish(self, count: int) -> Finished:
        total = sum(outcome.integer() for outcome in self._method.outcomes())
        state = ExactState.from_limbs(self._op.terms, (total,), 0, count, Flags.NOT_NEGATIVE_ZERO)
        return Finished(of_integer(self._op, total, count), True, state)
