"""Windows that move along an array on a GPU: the bits of the CPU, whose windows are held to rationals."""

from typing import Any

import numpy as np
import pytest

from tests.support.gpu.arrays import data
from warpfold.kernels.backend import GroupedReduction
from warpfold.kernels.catalog import rolling_backends
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import OPS, NanPolicy, op_named
from warpfold.kernels.parts.grouping import AlongAxes, Segments
from warpfold.kernels.parts.rolling import Closed, Rolling, Window
from warpfold.kernels.source import ArraySource, GeneratedSource

SIZE = 6000
NAMES = ("sum", "mean", "norm1", "min", "max", "norm_inf", "count", "count_nonzero", "any", "all")
WINDOWS = (
    Window(),
    Window(1),
    Window(7, min_count=3),
    Window(700, centred=True),
    Window(10_000, min_count=0),
    Window(width=40, closed=Closed.BOTH),
)


def filled(made: GroupedReduction) -> bytes:
    """The bits of the values, and 0 where there is none."""
    return np.ma.asarray(made.values).filled(0).tobytes()


def same(made: GroupedReduction, wanted: GroupedReduction, where: Any) -> None:
    assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), where
    assert made.counted() == wanted.counted(), where
    assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype), where


@pytest.mark.parametrize("kind", ["benign", "special", "equal"])
@pytest.mark.parametrize("name", DTYPES)
def test_windows_have_the_bits_of_the_cpu(backend: CudaBackend, name: str, kind: str) -> None:
    cpu, random = CpuBackend(), np.random.default_rng(2)
    array = data(kind, DTYPES[name], SIZE)
    times, keys = np.sort(random.integers(0, 900, SIZE)), random.integers(0, 5, SIZE)
    for number, window in enumerate(WINDOWS):
        beside: dict[str, Any] = {} if window.width is None else {"over": ArraySource(times)}
        for op in NAMES:
            ways: list[tuple[Any, dict[str, Any]]] = [(None, {})]
            if window.width is None:
                ways += [
                    ([AlongAxes((0,)), AlongAxes((1,))][number % 2], {}),
                    (Segments(offsets=(3, 40, 40, 5000)), {}),
                    (None, {"keys": ArraySource(keys)}),
                ]
            for within, more in ways:
                shape = (60, 100) if isinstance(within, AlongAxes) else (SIZE,)
                policy = NanPolicy.OMIT if (number + len(op)) % 2 else NanPolicy.PROPAGATE
                made, wanted = (
                    each.reduce_groups(
                        ArraySource(array.reshape(shape)), shape, Rolling(window, within), op, nan_policy=policy,
                        **beside, **more,
                    )
                    for each in (backend, cpu)
                )  # fmt: skip
                same(made, wanted, (op, window, within, policy))


def test_numbers_too_far_apart_are_added_by_the_host(backend: CudaBackend) -> None:
    array = np.array([1e300, 1.0, -1e300, 1e-300, 2.0])
    made = backend.reduce_groups(ArraySource(array), (5,), Rolling(Window(3)), "sum")
    wanted = CpuBackend().reduce_groups(ArraySource(array), (5,), Rolling(Window(3)), "sum")
    same(made, wanted, "far apart")


def test_a_million_windows_of_generated_elements(backend: CudaBackend) -> None:
    for name in ("float32", "float64", "int32"):
        kind = "normal" if DTYPES[name].is_float else "uniform"
        source = GeneratedSource(kind, 1_000_003, 5, DTYPES[name])
        for op in ("sum", "mean", "max"):
            for window in (Window(), Window(1000)):
                made, wanted = (
                    each.reduce_groups(source, (1_000_003,), Rolling(window), op) for each in (backend, CpuBackend())
                )
                assert filled(made) == filled(wanted), (name, op)


@pytest.mark.parametrize("size", [1, 3583, 3584, 3585, 70_001])
def test_windows_of_one_line_end_and_begin_in_any_tile(backend: CudaBackend, size: int) -> None:
    cpu = CpuBackend()
    for name in ("float32", "float64", "bfloat16", "int8"):
        array = data("benign", DTYPES[name], size)
        if name.startswith("float"):
            array = np.random.default_rng(size).standard_normal(size).astype(name)
        windows = [Window(rows, centred=centred) for rows in (1, 3583, 3584, 3585, 9000) for centred in (False, True)]
        for op in ("sum", "mean", "norm1"):
            for window in (Window(), *windows):
                made, wanted = (
                    each.reduce_groups(ArraySource(array), (size,), Rolling(window), op) for each in (backend, cpu)
                )
                assert filled(made) == filled(wanted), (name, op, window)


def test_sums_beyond_the_largest_number_are_infinite_and_those_of_the_least_are_kept(backend: CudaBackend) -> None:
    for name in ("float32", "float64"):
        kind = np.finfo(name)
        for cycle in ([kind.max], [kind.smallest_subnormal], [kind.max, -kind.max]):
            array = np.resize(cycle, 5000).astype(name)
            for window in (Window(), Window(3)):
                made, wanted = (
                    each.reduce_groups(ArraySource(array), (5000,), Rolling(window), "sum")
                    for each in (backend, CpuBackend())
                )
                assert filled(made) == filled(wanted), (name, cycle, window)


def test_ops_of_squares_are_refused_by_the_backend(backend: CudaBackend) -> None:
    assert [op for op in NAMES if "cuda" not in rolling_backends(OPS[op])] == []
    for op in ("var", "norm2", "rms"):
        with pytest.raises(InvalidInput, match=f"windows of {op} need the backend cpu or auto") as refused:
            backend.reduce_groups(ArraySource(np.ones(3)), (3,), Rolling(Window(2)), op_named(op))
        assert refused.value.field == "backend"
