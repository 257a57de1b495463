"""A profile from its first point to its last."""

from collections.abc import Iterator
from dataclasses import replace

from warpfold.kernels.bench import Axes
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.profile.compiled import compiled_kernels
from warpfold.kernels.cuda.profile.counters import count
from warpfold.kernels.cuda.profile.launched import launched_kernels
from warpfold.kernels.cuda.profile.records import KernelRecord, ProfileRecord
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import CudaError, KernelError, Unavailable
from warpfold.kernels.ops import OPS
from warpfold.kernels.outcome import Outcome, outcome_of


def profile(axes: Axes, gpu: Gpu | None, arch: str, *, counters: bool) -> Iterator[ProfileRecord]:
    """Every point of `axes` as launched on `gpu`; without one, what is known of kernels compiled for `arch`, once for
    all sizes. What does not exist is skipped with the reason, what goes wrong fails with it; CudaError is raised."""
    for strategy in axes.strategies:
        for op in axes.ops:
            for dtype in axes.dtypes:
                for n in axes.sizes if gpu is not None else (None,):
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
        replace(kernel, counters=found) for kernel, found in zip(point.kernels, counted, strict=True)
    )
    return replace(point, kernels=kernels)
