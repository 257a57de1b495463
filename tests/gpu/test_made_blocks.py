"""Generated arrays that do not fit a GPU's memory are made there part by part, whichever axes are reduced. Axes need
not lie side by side."""

from math import prod
from typing import Any

import numpy as np
import pytest

from tests.support.gpu.adversarial import adversarial
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import NanPolicy
from warpfold.kernels.parts.blocks import RunsSource
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.source import ArraySource, GeneratedSource

MADE: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3000, 70), (0,)),
    ((30_000, 7), (0,)),  # longer columns than find room
    ((7, 30_000), (1,)),
    ((40, 50, 60), (1,)),
    ((40, 50, 60), (0, 2)),
    ((10, 20, 30, 35), (0, 1)),
)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_a_generated_array_is_made_part_by_part(
    backend: CudaBackend, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, small = DTYPES[dtype], CudaBackend(0, room=20_000 * DTYPES[dtype].itemsize)

    def read(*_: Any) -> None:
        raise AssertionError("the host makes no element")

    monkeypatch.setattr(RunsSource, "read", read)
    monkeypatch.setattr(RunsSource, "read_into", read)
    for shape, axes in MADE:
        source, other = (GeneratedSource("uniform", prod(shape), seed, row, {"low": -9, "high": 90}) for seed in (3, 4))
        for op in ("sum", "std", "max", "dot"):
            second = other if op == "dot" else None
            made, whole = (
                on.reduce_groups(source, shape, AlongAxes(axes), op, other=second) for on in (small, backend)
            )
            assert (made.shape, made.dtype, made.counted()) == (whole.shape, whole.dtype, whole.counted())
            assert list(map(repr, made.listed())) == list(map(repr, whole.listed())), (shape, axes, op)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "bool"])
def test_axes_that_do_not_lie_side_by_side(backend: CudaBackend, dtype: str) -> None:
    cpu, row = CpuBackend(), DTYPES[dtype]
    small = CudaBackend(0, room=3000 * row.itemsize)
    ops = ("sum", "max", "argmax") if dtype == "bool" else ("sum", "mean", "var", "max", "argmax", "count_nonzero")
    for shape, axes in (((20, 30, 40), (0, 2)), ((7, 8, 9, 10), (0, 2)), ((7, 8, 9, 10), (1, 3)), ((5000, 3, 2), (1,))):
        size = prod(shape)
        bits = np.random.default_rng(size).integers(0, 2, size)
        array = adversarial("special", row, size, 1) if row.is_float else bits.astype(row.numpy)
        for laid in (array.reshape(shape), np.asfortranarray(array.reshape(shape))):
            for op in ops:
                policy = NanPolicy.OMIT if op == "mean" and row.is_float else NanPolicy.PROPAGATE
                made, less, wanted = (
                    on.reduce_groups(ArraySource(laid), shape, AlongAxes(axes), op, nan_policy=policy)
                    for on in (backend, small, cpu)
                )
                for each in (made, less):
                    assert (each.shape, each.dtype, each.counted()) == (wanted.shape, wanted.dtype, wanted.counted())
                    assert list(map(repr, each.listed())) == list(map(repr, wanted.listed())), (shape, axes, op)
