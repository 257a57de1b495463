"""A reduction by kernels of our own as a workload of a benchmark: its launches are recorded once, and a run starts
them."""

from collections.abc import Callable
from typing import Any

from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.recorded import Prepared, RecordingGpu
from warpfold.kernels.cuda.strategies.strategy import Reducer
from warpfold.kernels.ops import Value


class RecordedWorkload:
    """The launches of `reducer`, which was started on `recorder`, for one CuPy array."""

    waits = False

    def __init__(self, gpu: Gpu, recorder: RecordingGpu, reducer: Reducer, array: Any) -> None:
        with recorder.recording() as launches:
            reducer.add((array,), 0)
        self._reducer, self._prepared, self._array = reducer, Prepared(gpu, launches), array
        self.read_bytes = int(array.nbytes)
        self.run: Callable[[], None] = self._prepared.start

    def value(self) -> Value:
        with cuda_errors("reading the value"):
            return self._reducer.finish(self._array.size).value
