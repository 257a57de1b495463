"""Picked elements, counts of bins and spans of many values: device code on the host, against the aggregates of CPUs."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.kernels import on_host
from tests.support.kernels.grouped_on_host import SMALL_FOLDS, HostGpu, as_cupy, host_array
from warpfold.kernels.aggregates.aggregate import One
from warpfold.kernels.aggregates.by_name import aggregate_of
from warpfold.kernels.backend import Stages
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.grouped import selecting
from warpfold.kernels.cuda.grouped.folds import GroupedFolds
from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, OffsetsLayout, RowsLayout
from warpfold.kernels.cuda.grouped.reducing import reduce_groups
from warpfold.kernels.cuda.picks import kernels, picked, states
from warpfold.kernels.cuda.picks.states import GroupedStates
from warpfold.kernels.cuda.ranks import rows as rows_module
from warpfold.kernels.cuda.ranks.kernels import keys_of
from warpfold.kernels.cuda.ranks.rows import ValueRows
from warpfold.kernels.cuda.ranks.whole import select
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.ops import NanPolicy, Op, Parameters, op_named
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.source import ArraySource

Array = NDArray[Any]
Values = Callable[..., tuple[Array, Array]]

ON_HOST = ("bool", "int8", "uint32", "int64", "uint64", "bfloat16", "float64")
OPS = (
    ("first", Parameters()),
    ("last", Parameters()),
    ("nth", Parameters(n=3)),
    ("nth", Parameters(n=-2)),
    *((op, Parameters(k=k)) for op in ("top_k", "bottom_k", "argtop_k", "argbottom_k") for k in (None, 1, 5)),
    ("ptp", Parameters()),
    ("count", Parameters()),
    ("mode", Parameters()),
    ("nunique", Parameters()),
    ("histogram", Parameters()),
    ("histogram", Parameters(bins=(-3.5, -1.0, 0.0, 0.0, 1.25, 200.0, 1e19))),
    ("histogram", Parameters(bins=64, range=(-3.0, 3.0))),
)


def sorted_keys(gpu: Any, rows: ValueRows, dtype: DType, ranks: Array, which: Array) -> Array:
    """The keys in these ranks, by NumPy."""
    placed = np.zeros((rows.lengths.size, ranks.shape[1]), f"uint{8 * dtype.itemsize}")
    for value in np.flatnonzero(rows.lengths).tolist():
        elements = np.asarray(rows.elements(value)).view(dtype.numpy)
        keys = keys_of(elements, dtype)
        if dtype.is_float:
            keys[elements != elements] = np.iinfo(keys.dtype).max  # noqa: PLR0124 - NaN
        placed[value] = np.sort(keys)[ranks[which[value]]]
    return host_array(placed)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A GPU on the host, to which values of more than 60 elements are long."""
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    monkeypatch.setitem(sys.modules, "cupy", as_cupy())
    small = partial(GroupedFolds, shape=SMALL_FOLDS)
    monkeypatch.setattr(states, "GroupedFolds", small)
    monkeypatch.setattr(selecting, "GroupedFolds", small)
    monkeypatch.setattr(picked, "keys_of_rows", sorted_keys)
    for module in (kernels, rows_module):
        monkeypatch.setattr(module, "LONG", 60)
    monkeypatch.setattr(kernels, "_PART", 24)
    return HostGpu(None, on_host.build_folds(), typed={"picks": on_host.build_picks().pick_by_name})


@pytest.fixture
def values(gpu: Any) -> Values:
    """The values of a layout, and how many elements entered each."""

    def run(array: Array, layout: Layout, op: Op, *, omit_nan: bool, first: int | None = None) -> tuple[Array, Array]:
        made = GroupedStates(
            gpu, host_array(array), layout, DTYPES[array.dtype.name], op, omit_nan=omit_nan, first=first
        )
        made.start()
        return made.values(), layout.lengths - made.omitted()

    return run


def wanted(members: Array, op: Op, dtype: DType, *, omit_nan: bool) -> tuple[Array, int]:
    """The values of one group by the aggregate of CPUs, and of how many elements."""
    aggregate = aggregate_of(op, dtype, omit=omit_nan)
    under_way = aggregate.begun(1)
    places = np.flatnonzero(members == members) if omit_nan else np.arange(members.size)  # noqa: PLR0124 - NaN
    if places.size:
        under_way.update((np.ascontiguousarray(members[places]),), One(places=places), 1)
    return aggregate.finish(under_way.rows(0, 1), np.array([places.size])), places.size


def elements(dtype: DType, size: int, seed: int) -> Array:
    """Elements of which many are equal, with NaN, infinities and both zeros among floats."""
    random = np.random.default_rng(seed)
    if dtype.name == "bool":
        return random.integers(0, 2, size).astype(bool)
    if dtype.is_float:
        some = np.array([np.nan, -np.inf, np.inf, 0.0, -0.0, 1.0, -1.0, 1.5, 3.0, -3.0, 1e-30])
        return np.where(random.random(size) < 0.6, random.choice(some, size), random.standard_normal(size)).astype(
            dtype.numpy
        )
    low, high = dtype.bounds
    few = random.integers(0, 4, size).astype(dtype.numpy)
    word = np.uint64 if low == 0 else np.int64
    return np.where(random.random(size) < 0.5, few, random.integers(low, high, size, word, endpoint=True)).astype(
        dtype.numpy
    )


LAYOUTS: tuple[tuple[int, Callable[[], Layout]], ...] = (
    (35, lambda: RowsLayout(5, 7, 35)),
    (33, lambda: RowsLayout(5, 7, 33)),
    (36, lambda: ColumnsLayout(4, 9)),
    (0, lambda: RowsLayout(3, 1, 0)),
    (200, lambda: RowsLayout(2, 100, 200)),
    (150, lambda: OffsetsLayout.of(np.array([0, 0, 3, 40, 140, 141, 150]))),
)


@pytest.mark.parametrize("name", ON_HOST)
def test_values_have_the_bits_of_the_cpu(values: Values, name: str) -> None:
    dtype = DTYPES[name]
    for number, (size, make) in enumerate(LAYOUTS):
        array, layout = elements(dtype, size, number), make()
        bounds = np.append(0, np.cumsum(layout.lengths))
        members: list[Array] = [array[i:j] for i, j in pairwise(bounds)]
        if isinstance(layout, ColumnsLayout):
            members = list(array.reshape(layout.height, layout.width).T)
        for op_name, parameters in OPS:
            op = op_named(op_name).having(parameters)
            for omit_nan in (False, True):
                made, counts = values(array, layout, op, omit_nan=omit_nan)
                rows = made.reshape(len(members), -1)
                for row, count, group in zip(rows, counts.tolist(), members, strict=True):
                    want, entered = wanted(group, op, dtype, omit_nan=omit_nan)
                    assert count == entered
                    needed = [single.least_count(0) for single in op.singles()]
                    for mine, its, least in zip(row.tolist(), want.tolist(), needed, strict=True):
                        assert count < max(1, least) or repr(mine) == repr(its), (op, layout, omit_nan, group)


class InPieces:
    """A stager that brings a source in pieces."""

    def pieces(self, source: ArraySource, progress: Any) -> Iterator[tuple[tuple[Any, ...], int]]:
        for start in range(0, source.count, 70):
            yield (host_array(np.array(source.read(start, min(start + 70, source.count)))),), start

    def whole(self, source: ArraySource, progress: Any) -> Any:
        return host_array(np.array(source.read(0, source.count)))

    def stages(self, reduce_s: float) -> Stages:
        return Stages(reduce_s=reduce_s)


@pytest.mark.parametrize("name", ["float64", "int8"])
def test_pieces_make_the_value_of_the_whole(gpu: Any, name: str) -> None:
    dtype, stager = DTYPES[name], InPieces()
    array = elements(dtype, 333, 3)
    for op_name, parameters in OPS:
        op = op_named(op_name).having(parameters)
        for policy in (NanPolicy.PROPAGATE, NanPolicy.OMIT):
            made = select(gpu, stager, ArraySource(array), op, policy, None)  # type: ignore[arg-type]
            want, count = wanted(array, op, dtype, omit_nan=policy is NanPolicy.OMIT and dtype.is_float)
            assert made.count == count
            assert list(map(repr, made.grouped(op, dtype, (), "").listed())) == list(map(repr, want.tolist()))


@pytest.mark.parametrize("fortran", [False, True])
def test_values_along_axes_have_the_bits_and_the_order_of_the_cpu(gpu: Any, fortran: bool) -> None:
    cpu, stager = CpuBackend(), InPieces()
    array = elements(DTYPES["float64"], 120, 9).reshape(4, 5, 6)
    source = ArraySource(np.asfortranarray(array) if fortran else array)
    groupings: tuple[Grouping, ...] = (AlongAxes((0,)), AlongAxes((1,)), AlongAxes((0, 2)), Segments((0, 0, 7, 120)))
    for grouping in groupings:
        for name, parameters in (("argtop_k", Parameters(k=2)), ("nth", Parameters(n=-2)), ("mode", Parameters())):
            op = op_named(name).having(parameters)
            for policy in (NanPolicy.PROPAGATE, NanPolicy.OMIT):
                made = reduce_groups(gpu, stager, [source], array.shape, grouping, op, policy, None)  # type: ignore[arg-type]
                want = cpu.reduce_groups(source, array.shape, grouping, op, nan_policy=policy)
                assert list(map(repr, made.listed())) == list(map(repr, want.listed())), (name, grouping, policy)
                assert (made.counted(), made.shape) == (want.counted(), want.shape)
