"""The strategy on a GPU, and the reducer that it starts, which takes in arrays on the GPU."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from warpfold.kernels.bench.workload import Workload
from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import Op, Value
from warpfold.kernels.ops.operands import Operands
from warpfold.kernels.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Finished:
    """A value, whether it is proved to be correctly rounded, and the exact state if the strategy had one."""

    value: Value
    correctly_rounded: bool
    state: ExactState | None = None


class Reducer(Protocol):
    """One reduction under way. `add` puts work on the GPU's stream and returns; the others wait for it."""

    def add(self, arrays: Sequence[Any], first: int) -> None:
        """Take in a CuPy array of one dimension for each source of the op. The first element has index `first`."""
        ...

    def omitted(self) -> int | None:
        """How many elements the reducer left out because they are NaN; None where it leaves that to a count of the
        NaNs."""
        ...

    def finish(self, count: int) -> Finished:
        """The value over `count` ≥ 1 elements, those left out not counted."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedKernel:
    """A kernel of `unit` with what is known of its launch: threads a block and bytes of dynamic shared memory."""

    unit: Unit
    name: str
    threads: int
    shared: int


@dataclass(frozen=True, kw_only=True)
class CudaStrategy(Strategy, ABC):
    """A way to reduce on a GPU.

    With `needs_whole` a strategy takes all elements as one array, so that it cannot reduce sources that are larger than
    the GPU's memory.
    """

    backend: str = "cuda"
    needs_whole: ClassVar[bool] = False

    @abstractmethod
    def start(self, gpu: Gpu, op: Op, taken: Operands, *, pieces: int = 1, omit_nan: bool = False) -> Reducer:
        """Begin a reduction of about so many `pieces`; to be called while `gpu.active()`.

        With `omit_nan` NaN elements are left out. Raises InvalidInput where the strategy cannot do that, Unavailable
        where the GPU cannot run it.
        """

    @abstractmethod
    def workload(self, gpu: Gpu, op: Op, dtype: DType, array: Any) -> Workload:
        """The reduction of one CuPy array, made ready to be run and timed again and again."""

    @abstractmethod
    def planned(self, op: Op, dtype: DType, arch: str) -> tuple[PlannedKernel, ...]:
        """The kernels of ours that it launches for `op` of `dtype` on chips of `arch` ("sm_90"), in their order. Raises
        Unavailable saying why they are not known."""

    def omits(self, op: Op) -> bool:
        """Whether its reducers leave NaN elements out, and count them, in the same read."""
        return False

    def state_of_nothing(self, op: Op) -> ExactState | None:
        """The exact state that a reduction of no elements gives, where the strategy gives states."""
        return None


@dataclass(frozen=True, kw_only=True)
class PeerStrategy(CudaStrategy):
    """A peer's reduction: it takes a whole array, and launches kernels of its own choice."""

    needs_whole = True

    def planned(self, op: Op, dtype: DType, arch: str) -> tuple[PlannedKernel, ...]:
        raise Unavailable(f"{self.name} is a peer, which chooses its kernels only when it runs")
