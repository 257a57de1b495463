"""The launches of a strategy on a GPU, written down without running them."""

from collections.abc import Iterator
from typing import Any

from warpfold.kernels.cuda.compile import Unit, compile_unit
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu, Kernel
from warpfold.kernels.cuda.gpu.launch_shape import WARP
from warpfold.kernels.cuda.gpu.recorded import RecordedLaunch, RecordingGpu
from warpfold.kernels.cuda.profile.compiled import claimed
from warpfold.kernels.cuda.profile.records import KernelRecord
from warpfold.kernels.cuda.strategies.strategy import CudaStrategy
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.operands import operands
from warpfold.kernels.ops import Op
from warpfold.kernels.source import GeneratedSource


def launched_kernels(gpu: Gpu, strategy: str, op: Op, dtype: DType, n: int) -> tuple[KernelRecord, ...]:
    """The kernels that a strategy launches for an op of `n` elements in one array, in their order.

    Raises InvalidInput or Unavailable saying why there are none, OutOfMemory where the array has no room.
    """
    chosen = claimed(strategy, op, dtype)
    if chosen.needs_whole:
        chosen.planned(op, dtype, gpu.arch)  # says why a peer's launches are not written down
    watcher = _Watcher(gpu)
    with gpu.active(), cuda_errors(f"{op.name} by {strategy}"):
        launches = _launches(watcher, chosen, op, dtype, n)
        return tuple(_record(gpu, launch, watcher.units[launch.kernel.name]) for launch in launches)


class _Watcher(RecordingGpu):
    """Remembers, too, which unit each kernel is of."""

    def __init__(self, gpu: Gpu) -> None:
        super().__init__(gpu)
        self.units: dict[str, Unit] = {}

    def kernel(self, unit: Unit, name: str, *, cooperative: bool = False) -> Kernel:
        self.units[name] = unit
        return super().kernel(unit, name, cooperative=cooperative)


def _launches(gpu: _Watcher, strategy: CudaStrategy, op: Op, dtype: DType, n: int) -> list[RecordedLaunch]:
    source = GeneratedSource("zeros", n, 0, dtype)
    arrays = list(_arrays(dtype, n, op.sources))
    reducer = strategy.start(gpu, op, operands(op, source, source if op.sources == 2 else None, 0))
    with gpu.recording() as launches:
        reducer.add(arrays, 0)
    return launches


def _arrays(dtype: DType, n: int, count: int) -> Iterator[Any]:
    """Nothing reads them: what is launched depends on where they lie and how long they are."""
    import cupy

    free = int(cupy.cuda.runtime.memGetInfo()[0]) + int(cupy.get_default_memory_pool().free_bytes())
    if count * n * dtype.itemsize > free:
        raise OutOfMemory(f"{count * n:,} elements of {dtype.name} have no room in the {free:,} bytes that are free")
    for _ in range(count):
        yield cupy.empty(n, dtype=carrier(dtype))


def _record(gpu: Gpu, launch: RecordedLaunch, unit: Unit) -> KernelRecord:
    from cupy.cuda import runtime

    name = launch.kernel.name
    resources = next(row for row in compile_unit(unit, gpu.arch, gpu.cache).resources if row.kernel == name)
    resident = launch.kernel.blocks_per_multiprocessor(launch.block, launch.shared)
    most = int(runtime.getDeviceProperties(gpu.index)["maxThreadsPerMultiProcessor"]) // WARP
    warps = -(-launch.block // WARP)
    return KernelRecord(
        name=name,
        registers=resources.registers,
        static_shared=resources.shared,
        dynamic_shared=launch.shared,
        stack=resources.stack,
        spill_stores=resources.spill_stores,
        spill_loads=resources.spill_loads,
        threads=launch.block,
        blocks=launch.grid,
        blocks_per_multiprocessor=resident,
        occupancy_percent=100.0 * resident * warps / most,
        waves=launch.grid / (resident * gpu.multiprocessors) if resident else None,
    )
