"""Picked elements, spans and counts of bins on a GPU: the bits of the CPU, for every layout and policy."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.arrays import data
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.picks import counted
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NanPolicy, Parameters, op_named
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.source import ArraySource, GeneratedSource

EDGES = (-3.5, -1.0, -0.5, 0.0, 0.0, 0.25, 1.25, 100.0, 2.0**53, 1e19)
QUESTIONS = (
    ("first", Parameters()),
    ("last", Parameters()),
    ("nth", Parameters(n=40)),
    ("nth", Parameters(n=-3)),
    *((op, Parameters(k=k)) for op in ("top_k", "bottom_k", "argtop_k", "argbottom_k") for k in (None, 7, 100)),
    ("ptp", Parameters()),
    ("count", Parameters()),
    ("mode", Parameters()),
    ("nunique", Parameters()),
    ("histogram", Parameters()),
    ("histogram", Parameters(bins=EDGES)),
    ("histogram", Parameters(bins=1000, range=(-4.0, 130.0))),
)
LAYOUTS: tuple[tuple[tuple[int, ...], Grouping], ...] = (
    ((40, 30), AlongAxes((0,))),
    ((40, 30), AlongAxes((1,))),
    ((4, 700), AlongAxes((1,))),
    ((3, 50, 9), AlongAxes((1,))),
    ((2, 300_001), AlongAxes((1,))),
    ((700_003,), AlongAxes(None)),
    ((1000,), Segments(length=65)),
    ((300_500,), Segments(offsets=(0, 0, 1, 65, 130, 400, 300_000, 300_500))),
    ((0,), Segments(offsets=(0, 0))),
)
POLICIES = (NanPolicy.PROPAGATE, NanPolicy.OMIT)


def listed(values: Sequence[Any]) -> list[str]:
    """The values with the signs of zeros."""
    return [repr(value) for value in values]


def drawn(kind: str, name: str, size: int) -> NDArray[Any]:
    """Elements of a kind, or of few different values."""
    if kind != "ties":
        return data(kind, DTYPES[name], size)
    some = data("special", DTYPES[name], 12)
    if DTYPES[name].is_float:
        some[:4] = np.array([np.nan, -0.0, 0.0, 1.0]).astype(some.dtype)
    return np.random.default_rng(size).choice(some, size)


@pytest.mark.parametrize("kind", ["special", "ties", "equal"])
@pytest.mark.parametrize("name", DTYPES)
def test_many_values_have_the_bits_of_the_cpu(backend: CudaBackend, name: str, kind: str) -> None:
    cpu = CpuBackend()
    for shape, grouping in LAYOUTS:
        array = drawn(kind, name, math.prod(shape)).reshape(shape)
        for op, parameters in QUESTIONS:
            asked = op_named(op).having(parameters)
            for policy in POLICIES if DTYPES[name].is_float else POLICIES[:1]:
                made, wanted = (
                    each.reduce_groups(ArraySource(array), shape, grouping, asked, nan_policy=policy)
                    for each in (backend, cpu)
                )
                assert listed(made.listed()) == listed(wanted.listed()), (op, parameters, shape, grouping, policy)
                assert (made.counted(), made.shape, made.dtype) == (wanted.counted(), wanted.shape, wanted.dtype)


@pytest.mark.parametrize("name", DTYPES)
def test_single_values_have_the_bits_of_the_cpu(backend: CudaBackend, name: str) -> None:
    cpu = CpuBackend()
    for kind, size in (("special", 30_011), ("ties", 5_000_011), ("benign", 101)):
        array = drawn(kind, name, size)
        for op, parameters in QUESTIONS:
            asked = op_named(op).having(parameters)
            for single in asked.singles()[-1:]:
                for policy in POLICIES:
                    made, wanted = (
                        each.reduce(ArraySource(array), single, nan_policy=policy) for each in (backend, cpu)
                    )
                    assert listed([made.value, made.count]) == listed([wanted.value, wanted.count]), (op, parameters)


def test_the_host_counts_what_a_gpu_cannot_sort(backend: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "_MOST", 1000)
    array = np.random.default_rng(5).integers(0, 50, 4000)
    for op in ("mode", "nunique"):
        made, wanted = (each.reduce(ArraySource(array), op) for each in (backend, CpuBackend()))
        assert (made.value, made.count) == (wanted.value, wanted.count)


def test_fortran_arrays_have_the_places_of_c_order(backend: CudaBackend) -> None:
    array = np.asfortranarray(np.random.default_rng(3).integers(0, 5, (40, 50, 3)))
    for op in ("argtop_k", "argbottom_k"):
        asked = op_named(op).having(Parameters(k=9))
        for axes in ((0,), (1,), (0, 2), None):
            made, wanted = (
                each.reduce_groups(ArraySource(array), array.shape, AlongAxes(axes), asked).listed()
                for each in (backend, CpuBackend())
            )
            assert made == wanted


def test_a_nan_is_refused_by_its_index_and_a_place_beyond_the_end_too(backend: CudaBackend) -> None:
    array = np.arange(400.0)
    array[217] = np.nan
    with pytest.raises(InvalidInput, match="element 217 is NaN"):
        backend.reduce(ArraySource(array), "ptp", nan_policy=NanPolicy.RAISE)
    with pytest.raises(InvalidInput, match="needs 500 elements"):
        backend.reduce(ArraySource(array), op_named("nth").having(Parameters(n=499)))


def test_what_does_not_fit_the_gpu_comes_in_pieces(backend: CudaBackend) -> None:
    source = GeneratedSource("normal", 90_000_000, 7, DTYPES["float32"])
    small = CudaBackend(backend.gpu.index, room=1 << 20)
    try:
        for op, parameters in (("argtop_k", Parameters(k=20)), ("histogram", Parameters(bins=50, range=(-3.0, 3.0)))):
            asked = op_named(op).having(parameters)
            made, wanted = (
                each.reduce_groups(source, (90_000_000,), AlongAxes(None), asked) for each in (small, CpuBackend())
            )
            assert listed(made.listed()) == listed(wanted.listed())
    finally:
        small.close()
