"""A profile from its first point to its last: the kernels of a strategy as compiled, as launched, and as counted."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from warpfold.kernels.bench.axes import Axes
from warpfold.kernels.catalog import backends_for
from warpfold.kernels.cuda.compile import Binary, Unit, compile_unit
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu, Kernel
from warpfold.kernels.cuda.gpu.launch_shape import WARP
from warpfold.kernels.cuda.gpu.recorded import RecordedLaunch, RecordingGpu
from warpfold.kernels.cuda.profile.counters import count
from warpfold.kernels.cuda.profile.records import KernelRecord, ProfileRecord
from warpfold.kernels.cuda.strategies.registry import cuda_strategies
from warpfold.kernels.cuda.strategies.strategy import CudaStrategy, PlannedKernel
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import CudaError, InvalidInput, KernelError, OutOfMemory, Unavailable
from warpfold.kernels.ops import OPS, Op
from warpfold.kernels.ops.operands import operands
from warpfold.kernels.source import GeneratedSource
from warpfold.kernels.studies.outcome import Outcome, outcome_of


def claimed(strategy: str, op: Op, dtype: DType) -> CudaStrategy:
    """The strategy of that name; InvalidInput if it does not compute `op` of `dtype` on a GPU."""
    if "cuda" not in backends_for(op, dtype, strategy, dtype if op.sources == 2 else None):
        raise InvalidInput(f"strategy {strategy!r} does not compute {op.name} of {dtype.name} on a GPU", "strategies")
    return cuda_strategies()[strategy]


def compiled_kernels(strategy: str, op: Op, dtype: DType, arch: str) -> tuple[KernelRecord, ...]:
    """The kernels that a strategy launches for an op of `dtype`, as compiled for `arch` ("sm_90"). Raises InvalidInput
    or Unavailable saying why the strategy launches no kernels."""
    planned = claimed(strategy, op, dtype).planned(op, dtype, arch)
    return tuple(_compiled(kernel, compile_unit(kernel.unit, arch)) for kernel in planned)


def _compiled(planned: PlannedKernel, binary: Binary) -> KernelRecord:
    resources = next(row for row in binary.resources if row.kernel == planned.name)
    return KernelRecord(
        name=planned.name,
        registers=resources.registers,
        static_shared=resources.shared,
        dynamic_shared=planned.shared,
        stack=resources.stack,
        spill_stores=resources.spill_stores,
        spill_loads=resources.spill_loads,
        threads=planned.threads,
    )


def launched_kernels(gpu: Gpu, strategy: str, op: Op, dtype: DType, n: int) -> tuple[KernelRecord, ...]:
    """The kernels that a strategy launches for an op of `n` elements in one array, in their order.

    Raises InvalidInput or Unavailable saying why the strategy launches no kernels, OutOfMemory where the array has no
    room.
    """
    chosen = claimed(strategy, op, dtype)
    if chosen.needs_whole:
        chosen.planned(op, dtype, gpu.arch)  # raises Unavailable, which says why a peer's launches are not recorded
    watcher = _Watcher(gpu)
    with gpu.active(), cuda_errors(f"{op.name} by {strategy}"):
        launches = _launches(watcher, chosen, op, dtype, n)
        return tuple(_launched(gpu, launch, watcher.units[launch.kernel.name]) for launch in launches)


class _Watcher(RecordingGpu):
    """A recorder that also remembers the unit of each kernel."""

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
    """The array's elements are never read: the launches depend only on its address and its length."""
    import cupy

    free = int(cupy.cuda.runtime.memGetInfo()[0]) + int(cupy.get_default_memory_pool().free_bytes())
    if count * n * dtype.itemsize > free:
        raise OutOfMemory(f"{count * n:,} elements of {dtype.name} do not fit in the {free:,} bytes that are free")
    for _ in range(count):
        yield cupy.empty(n, dtype=carrier(dtype))


def _launched(gpu: Gpu, launch: RecordedLaunch, unit: Unit) -> KernelRecord:
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


def profile(axes: Axes, gpu: Gpu | None, arch: str, *, counters: bool) -> Iterator[ProfileRecord]:
    """A record for every point of `axes` as launched on `gpu`; without a GPU, a record of each kernel as compiled for
    `arch`, once for all sizes. A point that does not exist is skipped, and a point that goes wrong fails, each with its
    reason. CudaError is raised."""
    for strategy in axes.strategies:
        for op in axes.ops:
            for dtype in axes.dtypes:
                for n in axes.counts() if gpu is not None else (None,):
                    blank = ProfileRecord(strategy=strategy, op=op, dtype=dtype, n=n, outcome=Outcome.MEASURED)
                    yield _point(blank, gpu, arch, counters=counters)


def _point(blank: ProfileRecord, gpu: Gpu | None, arch: str, *, counters: bool) -> ProfileRecord:
    op, dtype = OPS[blank.op], DTYPES[blank.dtype]
    try:
        if gpu is None or blank.n is None:
            return replace(blank, kernels=compiled_kernels(blank.strategy, op, dtype, arch))
        kernels = launched_kernels(gpu, blank.strategy, op, dtype, blank.n)
    except CudaError:
        raise
    except KernelError as error:
        outcome, reason = outcome_of(error)
        return replace(blank, outcome=outcome, reason=reason)
    return _counted(replace(blank, kernels=kernels), gpu) if counters else replace(blank, kernels=kernels)


def _counted(point: ProfileRecord, gpu: Gpu) -> ProfileRecord:
    assert point.n is not None, "launched for a size"
    try:
        counted = count(gpu.index, point.strategy, point.op, point.dtype, point.n)
    except Unavailable as error:
        return replace(point, counters_unavailable=str(error))
    if len(counted) != len(point.kernels):
        return replace(
            point, counters_unavailable=f"ncu saw {len(counted)} kernels where {len(point.kernels)} are launched"
        )
    kernels: tuple[KernelRecord, ...] = tuple(
        replace(kernel, counters=counters) for kernel, counters in zip(point.kernels, counted, strict=True)
    )
    return replace(point, kernels=kernels)
