"""Ops of several totals and weights on a GPU: the values of a CPU, on every layout."""

from typing import Any

import numpy as np
import pytest

from tests.support.gpu.adversarial import adversarial
from warpfold.kernels.catalog import grouped_backends, keyed_backends
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.ops import OPS, NanPolicy, Terms
from warpfold.kernels.ops.weights import WITH_WEIGHTS
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan
from warpfold.kernels.source import ArraySource, GeneratedSource

OF_TOTALS = [op for op in OPS.values() if op.terms is Terms.TOTALS]
SIZE = 30_000

pytestmark = pytest.mark.usefixtures("gpu")


def elements(dtype: str, seed: int) -> Any:
    row = DTYPES[dtype]
    if row.is_float:
        return adversarial("special", row, SIZE, seed)
    return np.random.default_rng(seed).integers(*row.bounds, SIZE, row.numpy, endpoint=True)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int32", "uint64"])
@pytest.mark.parametrize("policy", [NanPolicy.PROPAGATE, NanPolicy.OMIT])
def test_a_whole_array(backend: CudaBackend, dtype: str, policy: NanPolicy) -> None:
    x, y = (ArraySource(elements(dtype, seed)) for seed in (1, 2))
    for op in OF_TOTALS:
        other = y if op.sources == 2 else None
        made, wanted = (on.reduce(x, op.name, other=other, nan_policy=policy) for on in (backend, CpuBackend()))
        assert (repr(made.value), made.count, made.dtype) == (repr(wanted.value), wanted.count, wanted.dtype), op.name


@pytest.mark.parametrize("op", WITH_WEIGHTS)
def test_weights(backend: CudaBackend, op: str) -> None:
    x, y = (ArraySource(adversarial("lognormal", DTYPES["float64"], SIZE, seed)) for seed in (1, 2))
    weights = ArraySource(np.arange(SIZE) % 7 - 1)
    other = y if OPS[op].sources == 2 else None
    made, wanted = (on.reduce(x, op, other=other, weights=weights) for on in (backend, CpuBackend()))
    assert repr(made.value) == repr(wanted.value)


def test_elements_that_are_made(backend: CudaBackend) -> None:
    made = GeneratedSource("normal", 100_000, 3, DTYPES["float32"])
    for op in ("rms", "sem", "skew"):
        assert repr(backend.reduce(made, op).value) == repr(CpuBackend().reduce(made, op).value)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize(
    ("shape", "grouping"),
    [
        ((3000, 10), AlongAxes((1,))),
        ((10, 3000), AlongAxes((0,))),
        ((30, 20, 50), AlongAxes((1,), keepdims=True)),
        ((SIZE,), Segments((0, 0, 11, 20_000, 29_999))),
    ],
)
def test_many_values(backend: CudaBackend, dtype: str, shape: tuple[int, ...], grouping: Grouping) -> None:
    source, second = (ArraySource(elements(dtype, seed).reshape(shape)) for seed in (4, 7))
    for op in OF_TOTALS:
        assert "cuda" in grouped_backends(op, DTYPES[dtype])
        asked: dict[str, Any] = {
            "other": second if op.sources == 2 else None,
            "nan_policy": NanPolicy.OMIT,
            "states": True,
        }
        made, wanted = (on.reduce_groups(source, shape, grouping, op.name, **asked) for on in (backend, CpuBackend()))
        assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), op.name
        assert made.counted() == wanted.counted()
        for mine, theirs in zip(made.states, wanted.states, strict=True):
            assert [mine[at] for at in range(len(mine))] == [theirs[at] for at in range(len(theirs))], op.name


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_groups(backend: CudaBackend, dtype: str) -> None:
    keys = ArraySource(np.random.default_rng(5).integers(-3, 200, SIZE).astype(np.int32))
    source = keyed_arrays([("k", keys, "by.0")], [("x", ArraySource(elements(dtype, 6)), "aggregations.0")])
    able = [op for op in OF_TOTALS if "cuda" in keyed_backends(op, DTYPES[dtype])]
    plan = GroupPlan(tuple(Aggregation(op, 0, op.name) for op in (*able, OPS["sum"])))
    made, wanted = (on.group_by(source, plan) for on in (backend, CpuBackend()))
    for mine, theirs in zip(made.columns, wanted.columns, strict=True):
        assert list(map(repr, mine.listed())) == list(map(repr, theirs.listed())), mine.op
