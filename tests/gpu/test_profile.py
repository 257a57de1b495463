"""Kernels as they are launched on this GPU."""

import shutil

import pytest

from warpfold.kernels.bench.axes import Axes, Cache
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.profile.run import compiled_kernels, profile
from warpfold.kernels.cuda.strategies.registry import own_strategies
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS


def test_every_strategy_of_ours_is_launched_as_compiled(backend: CudaBackend) -> None:
    names = ("exact", *own_strategies())
    axes = Axes(names, ("sum",), ("float32",), (1000, 1_000_000), (Cache.COLD,))
    points = list(profile(axes, backend.gpu, backend.gpu.arch, counters=False))
    assert len(points) == len(names) * 2
    for point in points:
        if point.outcome == "skipped":
            assert "needs sm_" in str(point.reason)
            continue
        assert point.outcome == "measured", point.reason
        compiled = {
            kernel.name: kernel
            for kernel in compiled_kernels(point.strategy, OPS["sum"], DTYPES["float32"], backend.gpu.arch)
        }
        for kernel in point.kernels:
            assert (kernel.registers, kernel.static_shared) == (
                compiled[kernel.name].registers,
                compiled[kernel.name].static_shared,
            )
            assert kernel.blocks is not None
            assert kernel.waves is not None
            assert kernel.blocks_per_multiprocessor
            assert kernel.occupancy_percent is not None
            assert 0 < kernel.occupancy_percent <= 100
            in_a_wave = kernel.blocks_per_multiprocessor * backend.gpu.multiprocessors
            assert kernel.waves == pytest.approx(kernel.blocks / in_a_wave)


@pytest.mark.parametrize(("op", "dtype"), [("var", "float32"), ("dot", "float64"), ("dot", "int32"), ("max", "int8")])
def test_the_exact_strategy_is_profiled_for_every_kind_of_op(backend: CudaBackend, op: str, dtype: str) -> None:
    axes = Axes(("exact",), (op,), (dtype,), (100_000,), (Cache.COLD,))
    (point,) = profile(axes, backend.gpu, backend.gpu.arch, counters=False)
    assert point.outcome == "measured", point.reason
    assert point.kernels


def test_what_has_no_room_is_skipped(backend: CudaBackend) -> None:
    axes = Axes(("exact",), ("sum",), ("float64",), (1 << 40,), (Cache.COLD,))
    (point,) = profile(axes, backend.gpu, backend.gpu.arch, counters=False)
    assert point.outcome == "skipped"
    assert "do not fit" in str(point.reason)


def test_counters_are_there_or_it_says_why_not(backend: CudaBackend) -> None:
    axes = Axes(("two_pass",), ("sum",), ("float32",), (1 << 24,), (Cache.COLD,))
    (point,) = profile(axes, backend.gpu, backend.gpu.arch, counters=True)
    if shutil.which("ncu") is None:
        assert "no ncu" in str(point.counters_unavailable)
    if point.counters_unavailable is None:
        for kernel in point.kernels:
            assert kernel.counters is not None
            assert kernel.counters.duration_us
            assert 0 <= (kernel.counters.dram_percent or 0) <= 100
            assert 0 < (kernel.counters.warp_efficiency_percent or 0) <= 100
