"""Exact states of values along axes and by segments on a GPU: the bytes of a CPU's."""

from typing import Any

import numpy as np
import pytest

from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from warpfold.kernels.backend import GroupedReduction
from warpfold.kernels.catalog import grouped_backends
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.ops import OPS, NanPolicy, Terms, op_named
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.parts.over_devices import reduce_spread
from warpfold.kernels.query import Shaped
from warpfold.kernels.source import ArraySource, GeneratedSource

ADDING = tuple(op.name for op in OPS.values() if op.adds and op.sources == 1 and op.terms is not Terms.TOTALS)
SHAPES: tuple[tuple[tuple[int, ...], Grouping], ...] = (
    ((3000, 7), AlongAxes((1,))),
    ((7, 3000), AlongAxes((0,), keepdims=True)),
    ((3, 300_000), AlongAxes((1,))),
    ((300_000, 3), AlongAxes((0,))),
    ((20, 30, 40), AlongAxes((1,))),
    ((90_001,), Segments((0, 0, 11, 20_000, 90_000))),
    ((50, 100), Segments(length=7)),
)


def listed(made: GroupedReduction) -> list[list[bytes]]:
    return [[column[at] for at in range(len(column))] for column in made.states]


def elements(dtype: DType, data: str, size: int) -> Any:
    if dtype.is_float:
        return adversarial(data, dtype, size, 1)
    least, most = dtype.bounds
    edges = np.array([least, most, 0, 1], object)
    return np.random.default_rng(size).choice(edges, size).astype(dtype.numpy)


def same(
    backend: CudaBackend, array: Any, grouping: Grouping, op: str, policy: NanPolicy, *, ddof: int = 0
) -> GroupedReduction:
    source, row = ArraySource(array), op_named(op)
    query = Shaped(
        source=source, shape=array.shape, grouping=grouping, op=row, nan_policy=policy, ddof=ddof, states=True
    )
    made = backend.reduce_at_once(query, None)
    wanted = CpuBackend().reduce_groups(source, array.shape, grouping, op, nan_policy=policy, ddof=ddof, states=True)
    assert listed(made) == listed(wanted), (op, grouping, policy)
    assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), (op, grouping, policy)
    return made


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_op_of_every_dtype_has_the_states_of_a_cpu(backend: CudaBackend, dtype: str) -> None:
    row, compared = DTYPES[dtype], 0
    for number, (shape, grouping) in enumerate(SHAPES):
        array = elements(row, ("any finite", "special")[number % 2], int(np.prod(shape))).reshape(shape)
        laid = np.asfortranarray(array) if number % 3 == 2 else array
        for op in ADDING:
            if "cuda" in grouped_backends(op_named(op), row):
                policy = NanPolicy.OMIT if number % 4 == 1 else NanPolicy.PROPAGATE
                made = same(backend, laid, grouping, op, policy, ddof=number % 2 if op_named(op).ddof else 0)
                compared += sum(map(len, made.states))
    assert compared > 10_000


@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_hostile_floats_have_the_states_of_a_cpu(backend: CudaBackend, dtype: str, data: str) -> None:
    array = adversarial(data, DTYPES[dtype], 60_000, 2)
    for shape, grouping in (((300, 200), AlongAxes((1,))), ((200, 300), AlongAxes((0,)))):
        for op in ("sum", "norm2", "var"):
            same(backend, array.reshape(shape), grouping, op, NanPolicy.OMIT)


@pytest.mark.parametrize("op", ["mean", "std"])
def test_neither_blocks_nor_pieces_show_in_states(backend: CudaBackend, op: str) -> None:
    for shape, grouping in SHAPES:
        array = adversarial("any finite", DTYPES["float32"], int(np.prod(shape)), 3).reshape(shape)
        whole = same(backend, array, grouping, op, NanPolicy.PROPAGATE)
        query = Shaped(source=ArraySource(array), shape=shape, grouping=grouping, op=op_named(op), states=True)
        made = reduce_spread([backend.at_once()], query, 5000)
        assert listed(made) == listed(whole), (shape, grouping)


def test_what_is_made_on_the_gpu_has_the_states_of_a_cpu(backend: CudaBackend) -> None:
    source, shape = GeneratedSource("lognormal", 1 << 20, 7, DTYPES["float32"]), (1 << 14, 1 << 6)
    query = Shaped(source=source, shape=shape, grouping=AlongAxes((1,)), op=op_named("sum"), states=True)
    made = backend.reduce_at_once(query, None)
    wanted = CpuBackend().reduce_groups(source, shape, AlongAxes((1,)), "sum", states=True)
    assert listed(made) == listed(wanted)
