"""Windows as a GPU's backend answers about them: device code on the host, beside the CPU."""

import sys
import types
from typing import Any

import numpy as np
import pytest

from tests.support.kernels import on_host
from tests.support.kernels.grouped_on_host import HostGpu, as_cupy, host_array
from warpfold.kernels.backend import GroupedReduction, Stages
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.rolling import reducing
from warpfold.kernels.cuda.rolling import values as values_module
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NanPolicy, op_named
from warpfold.kernels.parts.grouping import AlongAxes, Segments
from warpfold.kernels.parts.rolling import Closed, Rolling, Window
from warpfold.kernels.query import Moving
from warpfold.kernels.source import ArraySource

Reductions = tuple[GroupedReduction, GroupedReduction]


class Stager:
    """Elements are where they are."""

    def whole(self, source: ArraySource, progress: Any) -> Any:
        return host_array(np.array(source.read(0, source.count)))

    def stages(self, reduce_s: float) -> Stages:
        return Stages(reduce_s=reduce_s)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    cupy = as_cupy()
    cupy.__dict__["moveaxis"] = np.moveaxis
    runtime = types.SimpleNamespace(memGetInfo=lambda: (1 << 30, 1 << 30))
    cupy.cuda.runtime = runtime
    cupy.__dict__["get_default_memory_pool"] = lambda: types.SimpleNamespace(free_bytes=lambda: 0)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(values_module, "THREADS", 32)
    monkeypatch.setattr(values_module, "SCAN_THREADS", 32)
    return HostGpu(None, typed={"windows": on_host.build_windows().window_by_name})


def both(gpu: Any, array: Any, op: str, window: Window, within: Any = None, **more: Any) -> Reductions:
    """What a GPU answers, and a CPU."""
    query = Moving(
        source=ArraySource(array), op=op_named(op), shape=array.shape, grouping=Rolling(window, within), **more
    )
    stager: Any = Stager()
    return reducing.roll_on_gpu(gpu, stager, query, None), CpuBackend().answer(query)


def same(made: Reductions) -> bool:
    first, second = made
    alike = list(map(repr, first.listed())) == list(map(repr, second.listed()))
    return alike and (first.counted(), first.shape, first.dtype) == (second.counted(), second.shape, second.dtype)


@pytest.mark.parametrize("op", ["sum", "mean", "max", "count", "count_nonzero"])
def test_windows_have_the_bits_of_the_cpu(gpu: Any, op: str) -> None:
    random = np.random.default_rng(4)
    array = random.standard_normal((6, 10))
    array[2, 3:5], array[4, 4] = np.nan, -np.inf
    times, keys = ArraySource(np.sort(random.integers(0, 50, 60))), ArraySource(random.integers(0, 4, 60))
    flat = array.reshape(-1)
    for policy in (NanPolicy.PROPAGATE, NanPolicy.OMIT):
        assert same(both(gpu, flat, op, Window(), nan_policy=policy))
        assert same(both(gpu, flat, op, Window(4, min_count=0), Segments(offsets=(1, 1, 9, 40)), nan_policy=policy))
        assert same(both(gpu, flat, op, Window(3, centred=True), keys=keys, nan_policy=policy))
        assert same(both(gpu, flat, op, Window(width=7, closed=Closed.BOTH), over=times, nan_policy=policy))
        for axis in (0, 1):
            assert same(both(gpu, array, op, Window(3, centred=True), AlongAxes((axis,)), nan_policy=policy))


def test_integers_and_what_lies_too_far_apart(gpu: Any) -> None:
    assert same(both(gpu, np.array([2**62] * 5 + [-7]), "sum", Window(4)))
    assert same(both(gpu, np.array([3, -128, 7], np.int8), "min", Window(2)))
    assert same(both(gpu, np.array([1e300, 1.0, -1e300, 1e-300]), "sum", Window(2, min_count=0)))
    assert same(both(gpu, np.zeros(0), "sum", Window(2)))


def test_what_a_gpu_has_no_windows_of_is_refused(gpu: Any) -> None:
    with pytest.raises(InvalidInput, match="windows of var need the backend cpu or auto"):
        both(gpu, np.ones(3), "var", Window(2))
    query = Moving(source=ArraySource(np.ones(3)), op=op_named("sum"), shape=(4,), grouping=Rolling(Window(2)))
    stager: Any = Stager()
    with pytest.raises(InvalidInput, match="do not fit the shape"):
        reducing.roll_on_gpu(gpu, stager, query, None)
