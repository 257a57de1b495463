"""The clocks of a GPU: events behind a held stream, the wall clock, and graphs that the device replays by itself."""

import math
import statistics
import time
from typing import Any

from warpfold.kernels.bench.axes import Cache
from warpfold.kernels.bench.measurement import Replay
from warpfold.kernels.bench.workload import Runnable
from warpfold.kernels.cuda.bench.blocking_kernel import BlockingKernel
from warpfold.kernels.cuda.bench.reader import SWEEP, patternless, reading
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.errors import CudaError

# Before a cold run twice the size of the cache is written and then four times its size is read: nothing of the data is
# left in the cache, and little must still be written back.
_WRITE = 2
_READ = 4
_GRAPH_S = 1e-3  # the runs in a graph take so long, so that the start of the graph does not count
_GRAPH_RUNS = 64
_REPLAYS = 15


class CudaTimer:
    """Times runs on the stream of `gpu`, whose last cache has `cache_bytes`. To be used while `gpu.active()`."""

    resolution_s = 0.5e-6  # the resolution of cudaEventElapsedTime, by the documentation of the CUDA Runtime API

    def __init__(self, gpu: Gpu, cache_bytes: int) -> None:
        import cupy

        self._gpu = gpu
        with cuda_errors("the timer"):
            self._blocking_kernel = BlockingKernel(gpu)
            self._written = cupy.zeros(_WRITE * cache_bytes, dtype="uint8")
            self._sweep = reading(gpu, patternless(gpu, _READ * cache_bytes), SWEEP)
            gpu.stream.synchronize()

    def method(self, workload: Runnable) -> str:
        return "events, launch gaps included" if workload.waits else "events, stream held"

    def device(self, workload: Runnable, cache: Cache, runs: int) -> list[float]:
        with cuda_errors("timing"):
            if workload.waits:
                spans = [self._span(workload, cache) for _ in range(runs)]
            else:
                with self._blocking_kernel.held():
                    spans = [self._span(workload, cache) for _ in range(runs)]
            return self._seconds(spans)

    def host(self, workload: Runnable, runs: int) -> list[float]:
        synchronize, clock = self._gpu.stream.synchronize, time.perf_counter_ns
        times = []
        with cuda_errors("timing"):
            synchronize()
            for _ in range(runs):
                started = clock()
                workload.run()
                synchronize()
                times.append((clock() - started) / 1e9)
        return times

    def issue(self, workload: Runnable, runs: int) -> float:
        with cuda_errors("timing"):
            self._gpu.stream.synchronize()
            started = time.perf_counter_ns()
            for _ in range(runs):
                workload.run()
            self._gpu.stream.synchronize()
            return (time.perf_counter_ns() - started) / 1e9 / runs

    def replay(self, workload: Runnable) -> Replay | None:
        if workload.waits:
            return None
        self.host(workload, 1)  # nothing may be loaded or allocated for the first time while the stream is held
        (once,) = self.device(workload, Cache.HOT, 1)
        runs = max(1, min(_GRAPH_RUNS, math.ceil(_GRAPH_S / once)))
        graph = self._capture(workload, runs)
        if graph is None:
            return None
        spans = []
        with cuda_errors("replaying a graph"):
            for _ in range(_REPLAYS):
                # The stream is not held: graphs that wait take too much of its queue. The first of two replays keeps
                # the device busy while the host puts the second, the timed one, behind it.
                graph.launch(self._gpu.stream)
                spans.append(self._events(lambda: graph.launch(self._gpu.stream)))
            seconds = statistics.median(self._seconds(spans)) / runs
        return Replay(seconds, _kernels(graph) // runs)

    def flush(self) -> None:
        """Displace the data from the cache: write more than it holds, then read more than it holds."""
        self._written.data.memset_async(1, self._written.nbytes, self._gpu.stream)
        self._sweep.start()

    def _span(self, workload: Runnable, cache: Cache) -> tuple[Any, Any]:
        if cache is Cache.COLD:
            self.flush()
        return self._events(workload.run)

    def _events(self, run: Any) -> tuple[Any, Any]:
        import cupy

        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record(self._gpu.stream)
        run()
        stop.record(self._gpu.stream)
        return start, stop

    def _seconds(self, spans: list[tuple[Any, Any]]) -> list[float]:
        import cupy

        self._gpu.stream.synchronize()
        return [cupy.cuda.get_elapsed_time(start, stop) / 1e3 for start, stop in spans]

    def _capture(self, workload: Runnable, runs: int) -> Any:
        """A graph of `runs` runs. It is None if the workload does something that a graph cannot capture."""
        stream = self._gpu.stream
        refused = False
        stream.begin_capture()
        try:
            for _ in range(runs):
                workload.run()
        except Exception:  # each library says in its own way that it cannot be captured
            refused = True
        try:
            with cuda_errors("capturing"):
                graph = stream.end_capture()
        except CudaError:
            return None
        return None if refused else graph


def _kernels(graph: Any) -> int:
    """How many kernels a graph launches."""
    from cuda.bindings import driver

    handle = driver.CUgraph(graph.graph)
    status, _, count = driver.cuGraphGetNodes(handle)
    status, nodes, count = driver.cuGraphGetNodes(handle, count)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise CudaError(f"the nodes of a graph: {status.name}")
    kinds = [driver.cuGraphNodeGetType(node)[1] for node in nodes[:count]]
    return kinds.count(driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL)
