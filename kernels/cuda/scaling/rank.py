"""One GPU as a rank: its part of the data, its reduction, and its clock."""

from typing import Any, Protocol

import numpy as np

from warpfold.kernels.cuda.bench.blocking_kernel import BlockingKernel
from warpfold.kernels.cuda.bench.timer import CudaTimer
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.exact import ExactAccumulator, SumKind, states_of_limbs
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.recorded import Prepared, RecordingGpu
from warpfold.kernels.cuda.staging.generator import fill
from warpfold.kernels.cuda.strategies.registry import own_strategies
from warpfold.kernels.cuda.strategies.rows import FAST
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.generate import plan
from warpfold.kernels.ops import OPS
from warpfold.kernels.scaling.axes import Method
from warpfold.kernels.scaling.local_ranks import Sum
from warpfold.kernels.source import GeneratedSource


class Local(Protocol):
    """The prepared reduction of one part: `start` puts it on the stream, and its result goes to `sent`."""

    sent: Any

    def start(self) -> None: ...

    def sum_of(self, numbers: Any) -> Sum:
        """The sum that the numbers in `sent`, or in the sum of several `sent`, stand for."""
        ...


class _Exact:
    """The limbs of an exact state, which each run clears and adds to."""

    def __init__(self, gpu: Gpu, dtype: DType, array: Any) -> None:
        from cupy.cuda import runtime

        recorder = RecordingGpu(gpu)
        accumulator = ExactAccumulator(recorder, dtype, SumKind.VALUES)
        with recorder.recording() as launches:
            accumulator.add(array)
        self.sent = accumulator.limbs
        self._memset, self._clear = runtime.memsetAsync, (self.sent.data.ptr, 0, self.sent.nbytes, gpu.stream.ptr)
        self._prepared = Prepared(gpu, launches)

    def start(self) -> None:
        self._memset(*self._clear)
        self._prepared.start()

    def sum_of(self, numbers: Any) -> Sum:
        return states_of_limbs(SumKind.VALUES, numbers.get())[0]


class _Float:
    """The fast strategy's sum, a single float64."""

    def __init__(self, gpu: Gpu, dtype: DType, array: Any) -> None:
        recorder = RecordingGpu(gpu)
        reducer = own_strategies()[FAST].reducer(recorder, OPS["sum"], dtype)
        with recorder.recording() as launches:
            reducer.add((array,), 0)
        self._reducer = reducer  # whose arrays the launch writes to
        self.sent = launches[-1].args[-1][:1].view(np.float64)
        self._prepared = Prepared(gpu, launches)

    def start(self) -> None:
        self._prepared.start()

    def sum_of(self, numbers: Any) -> Sum:
        return float(numbers[0])


class GpuRank:
    """GPU `index` as `rank`. To be used while `gpu.active()`."""

    def __init__(self, index: int, rank: int) -> None:
        import cupy

        self.gpu, self.rank = Gpu(index), rank
        with cuda_errors("device properties"), self.gpu.active():
            cache_bytes = int(cupy.cuda.runtime.getDeviceProperties(index)["l2CacheSize"])
            self._timer = CudaTimer(self.gpu, cache_bytes)
            self.blocking_kernel = BlockingKernel(self.gpu)
            self.here, self.all_here = cupy.ones(1, dtype=np.int64), cupy.zeros(1, dtype=np.int64)
        self._part: Any = None
        self.local: Local | None = None
        self.sent: Any = None
        self.received: Any = None

    def empty(self) -> None:
        """Give back the memory of the part and of the message."""
        import cupy

        self._part = self.local = self.sent = self.received = None
        with cuda_errors("freeing"):
            self.gpu.stream.synchronize()
            cupy.get_default_memory_pool().free_all_blocks()

    def load(self, source: GeneratedSource, start: int, stop: int, method: Method) -> None:
        """Make elements `start` … `stop` − 1 and prepare their reduction."""
        import cupy

        self.empty()
        self._reserve((stop - start) * source.dtype.itemsize)
        with cuda_errors("a rank's part"):
            self._part = cupy.empty(stop - start, dtype=carrier(source.dtype))
            fill(self.gpu, plan(source), self._part, start)
            local: Local = (_Exact if method is Method.EXACT else _Float)(self.gpu, source.dtype, self._part)
            self.local, self.sent, self.received = local, local.sent, cupy.zeros_like(local.sent)
            self.gpu.stream.synchronize()

    def prepare_message(self, words: int) -> None:
        """Make a message: number k is k + rank."""
        import cupy

        self.empty()
        self._reserve(3 * 8 * words)  # the memory also holds the numbers that the message is checked against
        with cuda_errors("a message"):
            self.sent = cupy.arange(words, dtype=np.int64)
            self.sent += self.rank
            self.received = cupy.zeros(words, dtype=np.int64)
            self.gpu.stream.synchronize()

    def received_sum(self, ranks: int) -> bool:
        """Whether every number of the message is the sum of those of all ranks."""
        import cupy

        with cuda_errors("checking a message"):
            expected = cupy.arange(self.received.size, dtype=np.int64)
            expected *= ranks
            expected += ranks * (ranks - 1) // 2
            return bool((self.received == expected).all())

    def flush(self) -> None:
        """Displace the data from the cache."""
        self._timer.flush()

    def event(self) -> Any:
        """An event that records the time that the stream has reached."""
        import cupy

        event = cupy.cuda.Event()
        event.record(self.gpu.stream)
        return event

    def _reserve(self, needed: int) -> None:
        import cupy

        with cuda_errors("memory of the device"):
            free = int(cupy.cuda.runtime.memGetInfo()[0])
        if needed > free:
            raise OutOfMemory(
                f"a rank's data take {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB of {self.gpu.name} are free"
            )
