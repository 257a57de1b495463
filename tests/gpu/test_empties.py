"""A GPU gives no elements the values of `kernels/ops/table.py`: as a whole, along axes, by segments and by key."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from warpfold.kernels.catalog import grouped_backends, keyed_backends, strategies
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import NoElements
from warpfold.kernels.formats.frames import Wanted, frame_of, keyed_frame
from warpfold.kernels.ops import OPS, NanPolicy, Op, empty_value
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan
from warpfold.kernels.source import ArraySource

OF_ONE = [op for op in OPS.values() if op.sources == 1]
CLAIMED = {claim for row in strategies() if row.backend == "cuda" for claim in row.claims}


def check_whole(backend: CudaBackend, op: Op, dtype: DType, array: Any, policy: NanPolicy) -> None:
    if op.empty is None:
        with pytest.raises(NoElements, match=f"{op.name} of no elements"):
            backend.reduce(ArraySource(array), op.name, nan_policy=policy)
        return
    reduced, wanted = backend.reduce(ArraySource(array), op.name, nan_policy=policy), empty_value(op, dtype)
    assert (repr(reduced.value), reduced.count) == (repr(wanted), 0), op.name


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.usefixtures("gpu")
def test_a_whole_array_of_no_elements(backend: CudaBackend, dtype: DType) -> None:
    for op in (op for op in OF_ONE if (op.name, dtype.name) in CLAIMED):
        check_whole(backend, op, dtype, np.empty(0, dtype.numpy), NanPolicy.PROPAGATE)
        if dtype.is_float:
            check_whole(backend, op, dtype, np.full(40, np.nan, dtype.numpy), NanPolicy.OMIT)


NOTHING: tuple[tuple[tuple[int, ...], Grouping], ...] = (
    ((3, 0), AlongAxes((1,))),
    ((0, 3), AlongAxes((0,))),
    ((2, 0, 3), AlongAxes((1,), keepdims=True)),
    ((0,), Segments((0, 0, 0))),
    ((0,), AlongAxes((0,))),
)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.usefixtures("gpu")
def test_values_along_axes_and_by_segments_of_no_elements(backend: CudaBackend, dtype: DType) -> None:
    cpu, some = CpuBackend(), np.array([3, 1, 0, 1, 2]).astype(dtype.numpy)
    nans = np.array([[np.nan] * 3, [2, np.nan, -0.0]]).astype(dtype.numpy) if dtype.is_float else None
    for op in (op for op in OF_ONE if "cuda" in grouped_backends(op, dtype)):
        asked = [(np.empty(shape, dtype.numpy), grouping, NanPolicy.PROPAGATE) for shape, grouping in NOTHING]
        asked.append((some, Segments((0, 2, 2, 5, 5)), NanPolicy.PROPAGATE))
        if nans is not None:
            asked += [(nans, AlongAxes((axis,)), NanPolicy.OMIT) for axis in (0, 1)]
        for array, grouping, policy in asked:
            made, wanted = (
                on.reduce_groups(ArraySource(array), array.shape, grouping, op.name, nan_policy=policy)
                for on in (backend, cpu)
            )
            assert (made.shape, made.dtype, made.counted()) == (wanted.shape, wanted.dtype, wanted.counted())
            assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), (op.name, array.shape)


@pytest.mark.usefixtures("gpu")
def test_more_values_than_are_listed_of_which_some_have_no_elements(backend: CudaBackend) -> None:
    offsets = tuple((np.arange(30_001) // 2 * 2).tolist())
    array = np.arange(30_000, dtype=np.float32)
    for op in (op for op in OF_ONE if "cuda" in grouped_backends(op, DTYPES["float32"])):
        made, wanted = (
            on.reduce_groups(ArraySource(array), array.shape, Segments(offsets), op.name)
            for on in (backend, CpuBackend())
        )
        assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), op.name


@pytest.mark.parametrize("dtype", [row for row in DTYPES.values() if row.native], ids=lambda row: row.name)
@pytest.mark.usefixtures("gpu")
def test_groups_of_nulls_and_of_nans_that_are_left_out(backend: CudaBackend, dtype: DType) -> None:
    ops = tuple(op for op in OF_ONE if op.name != "prod" and "cuda" in keyed_backends(op, dtype))
    keys = np.arange(40_000, dtype=np.int32) % 7
    values = np.ones(keys.size, dtype.numpy)
    if dtype.is_float:
        values[keys == 3] = np.nan
    table = pa.table({"k": keys, "x": pa.array(values, mask=keys == 5)})
    plan = GroupPlan(tuple(Aggregation(op, 0, op.name) for op in ops), nan_policy=NanPolicy.OMIT)
    wanted_columns = [Wanted("k", "k", "by.0")], [Wanted("x", "x", "aggregations.0")]
    source = keyed_frame(frame_of(table), *wanted_columns, refuse_nulls=False)
    made, wanted = (on.group_by(source, plan) for on in (backend, CpuBackend()))
    for mine, theirs in zip(made.columns, wanted.columns, strict=True):
        assert list(map(repr, mine.listed())) == list(map(repr, theirs.listed())), mine.op
