"""Reductions to many values by the GPU's code on the host: every shape has the bits of the CPU's own."""

import ctypes
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.support.gpu.adversarial import adversarial
from tests.support.kernels import on_host
from tests.support.kernels.grouped_on_host import SMALL_FOLDS, HostGpu, as_cupy, host_array, small_shapes
from warpfold.kernels.backend import GroupedReduction, Stages
from warpfold.kernels.catalog import grouped_backends
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped import Layout, Rounding, reducing, selecting, totals
from warpfold.kernels.cuda.grouped.folds import GroupedFolds
from warpfold.kernels.cuda.grouped.totals import GroupedTotals
from warpfold.kernels.cuda.grouped.values import GroupedValues
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NanPolicy, op_named
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.source import ArraySource


@pytest.fixture(scope="module")
def libraries() -> tuple[ctypes.CDLL, ...]:
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    return on_host.build_grouped(), on_host.build_folds()


class HostStager:
    """Elements are where they are."""

    def whole(self, source: ArraySource, progress: Any) -> Any:
        return host_array(np.array(source.read(0, source.count)))

    def stages(self, reduce_s: float) -> Stages:
        return Stages(reduce_s=reduce_s)


class Reducer:
    """Reduces arrays on the host as a GPU does, and on the CPU."""

    def __init__(self, *libraries: ctypes.CDLL) -> None:
        self._gpu: Any = HostGpu(*libraries)
        self._stager: Any = HostStager()
        self._cpu = CpuBackend()

    def on_gpu(
        self, array: Any, grouping: Grouping, op: str, policy: NanPolicy, ddof: int = 0,
        *, states: bool = False, other: Any = None,
    ) -> GroupedReduction:  # fmt: skip
        sources = [ArraySource(each) for each in (array, other) if each is not None]
        return reducing.reduce_groups(
            self._gpu, self._stager, sources, array.shape, grouping, op_named(op), policy, None, ddof, states=states
        )

    def on_cpu(
        self, array: Any, grouping: Grouping, op: str, policy: NanPolicy, ddof: int = 0,
        *, states: bool = False, other: Any = None,
    ) -> GroupedReduction:  # fmt: skip
        second = None if other is None else ArraySource(other)
        return self._cpu.reduce_groups(
            ArraySource(array), array.shape, grouping, op, nan_policy=policy, ddof=ddof, states=states, other=second
        )


def of_small_shapes(  # noqa: PLR0917
    gpu: Gpu, array: Any, layout: Layout, dtype: DType, kind: SumKind, rounding: Rounding, shapes: None, other: Any
) -> GroupedValues:
    return GroupedValues(gpu, array, layout, dtype, kind, rounding, shapes=small_shapes(kind), other=other)


def widened_on_host(gpu: Gpu, array: Any, dtype: DType, wide: DType) -> Any:
    return host_array(np.asarray(array).view(dtype.numpy).astype(wide.numpy))


@pytest.fixture
def reducer(libraries: tuple[ctypes.CDLL, ...], monkeypatch: pytest.MonkeyPatch) -> Reducer:
    monkeypatch.setitem(sys.modules, "cupy", as_cupy())
    monkeypatch.setattr(selecting, "GroupedFolds", partial(GroupedFolds, shape=SMALL_FOLDS))
    monkeypatch.setattr(totals, "GroupedTotals", partial(GroupedTotals, at_once=4000))
    monkeypatch.setattr(totals, "GroupedValues", of_small_shapes)
    monkeypatch.setattr(reducing, "widened", widened_on_host)
    return Reducer(*libraries)


GROUPINGS: tuple[tuple[tuple[int, ...], Grouping], ...] = (
    ((6, 10), AlongAxes((1,))),
    ((6, 10), AlongAxes((0,), keepdims=True)),
    ((6, 10), AlongAxes((0, 1))),
    ((4, 5, 6), AlongAxes((1,))),
    ((4, 5, 6), AlongAxes((1, 2), keepdims=True)),
    ((4, 1, 6), AlongAxes((-1,))),
    ((4, 1, 6), AlongAxes((1,))),
    ((1, 1), AlongAxes((0,))),
    ((3, 0, 5), AlongAxes((1,))),
    ((3, 0, 5), AlongAxes((0,))),
    ((61,), Segments((0, 0, 7, 60, 60))),
    ((5, 10), Segments(length=7)),
)


@pytest.mark.parametrize(("shape", "grouping"), GROUPINGS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["sum", "mean"])
def test_shape_dtype_counts_and_bits_are_those_of_a_cpu(
    reducer: Reducer, op: str, dtype: str, shape: tuple[int, ...], grouping: Grouping
) -> None:
    for data, policy in (
        ("any finite", NanPolicy.PROPAGATE),
        ("special", NanPolicy.PROPAGATE),
        ("special", NanPolicy.OMIT),
    ):
        array = adversarial(data, DTYPES[dtype], int(np.prod(shape)), 1).reshape(shape)
        if data == "special" and array.size:
            array.reshape(-1)[::9] = np.nan
        for laid in (array, np.asfortranarray(array)):
            made = reducer.on_gpu(laid, grouping, op, policy)
            wanted = reducer.on_cpu(laid, grouping, op, policy)
            assert (made.shape, made.dtype, made.counted()) == (wanted.shape, wanted.dtype, wanted.counted())
            assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), (data, policy)


SELECTING = ("min", "max", "norm_inf", "argmin", "argmax", "count_nonzero", "any", "all")
ADDING = ("sum", "mean", "norm1", "sum_squares", "norm2", "var", "std")
OTHERS = {
    "bool": (*SELECTING, *ADDING, "prod"),
    "int8": (*SELECTING, *ADDING),
    "uint32": (*SELECTING, *ADDING),
    "int64": (*SELECTING, *ADDING),
    "uint64": (*SELECTING, *ADDING),
    "bfloat16": (*SELECTING, "norm1", "sum_squares", "norm2"),
    "float16": ("sum", "mean", "var"),
    "float32": ("norm1", "sum_squares", "var"),
    "float64": (*SELECTING, "norm1", "norm2", "std"),
}
OTHER_GROUPINGS: tuple[tuple[tuple[int, ...], Grouping], ...] = (
    ((6, 10), AlongAxes((0,), keepdims=True)),
    ((4, 5, 6), AlongAxes((1,))),
    ((4, 1, 6), AlongAxes((1, 2))),
    ((3, 0, 5), AlongAxes((1,))),
    ((2, 70), AlongAxes((1,))),
    ((200, 3), AlongAxes((0,))),
    ((5, 10), Segments(length=7)),
    ((90,), Segments((0, 2, 2, 41, 90))),
)


def elements(dtype: DType, size: int, data: str) -> Any:
    """Elements of a kind of data, of which some are equal, extreme or, of floats, NaN."""
    if dtype.is_float:
        array = adversarial(data, dtype, size, 1)
        if size:
            array[::7] = array[size // 2]
        return array
    random = np.random.default_rng(size)
    least, most = dtype.bounds
    if data == "special":  # all the same
        return np.full(size, most if size % 2 else least).astype(dtype.numpy)
    near = random.integers(max(least, -3), min(most, 3), size, endpoint=True)
    return np.where(random.random(size) < 0.5, near, random.choice(np.array([least, most], object), size)).astype(
        dtype.numpy
    )


@pytest.mark.parametrize("dtype", OTHERS)
def test_other_ops_have_the_values_of_a_cpu(reducer: Reducer, dtype: str) -> None:
    row = DTYPES[dtype]
    for number, (shape, grouping) in enumerate(OTHER_GROUPINGS):
        for data in ("any finite", "special"):
            array = elements(row, int(np.prod(shape)), data).reshape(shape)
            for laid in (array, np.asfortranarray(array))[: 1 + (data == "special" and array.ndim > 1)]:
                for op in OTHERS[dtype][number // 2 % 2 :: 2]:  # every op with half of the groupings
                    policy = NanPolicy.OMIT if number % 2 and row.is_float else NanPolicy.PROPAGATE
                    ddof = number % 2 if op_named(op).ddof else 0
                    made = reducer.on_gpu(laid, grouping, op, policy, ddof)
                    wanted = reducer.on_cpu(laid, grouping, op, policy, ddof)
                    context = (op, data, shape, grouping, policy)
                    assert (made.shape, made.dtype, made.counted()) == (
                        wanted.shape,
                        wanted.dtype,
                        wanted.counted(),
                    ), context
                    assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), context


@pytest.mark.parametrize("dtype", OTHERS)
def test_states_are_the_bytes_of_a_cpu(reducer: Reducer, dtype: str) -> None:
    row, compared = DTYPES[dtype], 0
    able = [op for op in ADDING if "cuda" in grouped_backends(op_named(op), row)]
    for number, (shape, grouping) in enumerate(OTHER_GROUPINGS):
        array = elements(row, int(np.prod(shape)), ("any finite", "special")[number % 2]).reshape(shape)
        laid = np.asfortranarray(array) if number % 4 < 2 else array
        policy = (NanPolicy.PROPAGATE, NanPolicy.OMIT)[number // 4]
        for op in able:
            ddof = number % 2 if op_named(op).ddof else 0
            made = reducer.on_gpu(laid, grouping, op, policy, ddof, states=True)
            wanted = reducer.on_cpu(laid, grouping, op, policy, ddof, states=True)
            assert listed(made) == listed(wanted), (op, shape, grouping, policy)
            assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), (op, shape, grouping, policy)
            compared += sum(map(len, made.states))
    assert compared > 40 * len(able)


def listed(made: GroupedReduction) -> list[list[bytes]]:
    """The states of all values, for each kind of terms."""
    return [[column[at] for at in range(len(column))] for column in made.states]


def test_states_of_zeros_tell_their_signs(reducer: Reducer) -> None:
    array = np.array([[-0.0, -0.0], [-0.0, 0.0], [np.nan, -0.0], [np.nan, np.nan], [np.inf, -np.inf]], np.float32)
    for policy in (NanPolicy.OMIT, NanPolicy.PROPAGATE):
        for op in ADDING:
            made, wanted = (
                on(array, AlongAxes((1,)), op, policy, states=True) for on in (reducer.on_gpu, reducer.on_cpu)
            )
            assert listed(made) == listed(wanted), (op, policy)


APART: tuple[tuple[tuple[int, ...], Grouping], ...] = (
    ((4, 5, 6), AlongAxes((0, 2))),
    ((4, 5, 6), AlongAxes((2, 0), keepdims=True)),
    ((3, 4, 5, 6), AlongAxes((0, 2))),
    ((3, 4, 5, 6), AlongAxes((1, 3))),
    ((3, 4, 1, 6), AlongAxes((0, 3))),
    ((30, 3, 2), AlongAxes((1,))),  # more blocks than launches may be
)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int8"])
def test_axes_that_do_not_lie_side_by_side_have_the_values_of_a_cpu(
    reducer: Reducer, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reducing, "_MOST_LAUNCHES", 20)
    ops = ("sum", "std", "argmax", "count_nonzero") if dtype != "bfloat16" else ("sum", "max")
    for shape, grouping in APART:
        array = elements(DTYPES[dtype], int(np.prod(shape)), "normal").reshape(shape)
        for laid in (array, np.asfortranarray(array)):
            for op in ops:
                made, wanted = (on(laid, grouping, op, NanPolicy.PROPAGATE) for on in (reducer.on_gpu, reducer.on_cpu))
                assert (made.shape, made.counted()) == (wanted.shape, wanted.counted())
                assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), (op, shape, grouping)


DOTS = (
    *(("float32", "float32"), ("float64", "float64"), ("bfloat16", "bfloat16"), ("float16", "float16")),
    *(("float16", "bfloat16"), ("float32", "float64"), ("bool", "bool"), ("int8", "int8"), ("uint32", "uint32")),
    *(("int8", "int64"), ("int64", "int64"), ("uint64", "int64"), ("uint64", "uint64")),
)


@pytest.mark.parametrize(("left", "right"), DOTS)
def test_dot_has_the_values_and_states_of_a_cpu(reducer: Reducer, left: str, right: str) -> None:
    rows = (DTYPES[left], DTYPES[right])
    for number, (shape, grouping) in enumerate((*OTHER_GROUPINGS, *APART[:3])):
        for data in ("any finite", "special"):
            size = int(np.prod(shape))
            x, y = (elements(row, size, data).reshape(shape) for row in rows)
            policy = NanPolicy.OMIT if number % 2 and rows[0].is_float else NanPolicy.PROPAGATE
            lies = ((x, y), (np.asfortranarray(x), np.asfortranarray(y)), (x, np.asfortranarray(y)))
            for laid in lies if data == "special" else lies[number % 3 :][:1]:
                made, wanted = (
                    on(laid[0], grouping, "dot", policy, states=number % 3 == 0, other=laid[1])
                    for on in (reducer.on_gpu, reducer.on_cpu)
                )
                context = (data, shape, grouping, policy)
                kind = (made.shape, made.dtype, made.counted())
                assert kind == (wanted.shape, wanted.dtype, wanted.counted()), context
                assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), context
                assert listed(made) == listed(wanted), context


def test_a_nan_of_either_array_is_refused_by_its_index(reducer: Reducer, monkeypatch: pytest.MonkeyPatch) -> None:
    class Counter:
        def __init__(self, gpu: Gpu, dtype: DType) -> None:
            self._places: list[int] = []

        def add(self, array: Any, first: int) -> None:
            self._places += np.flatnonzero(np.isnan(array)).tolist()

        def refuse(self, what: str) -> None:
            if self._places:
                raise InvalidInput(f"{what} {self._places[0]}", "nan_policy")

    monkeypatch.setattr(reducing, "NanCounter", Counter)
    whole = np.ones((3, 4), np.float32)
    pierced = whole.copy()
    pierced[1, 2] = np.nan
    for arrays, what in (((pierced, whole), "element 6"), ((whole, pierced), "other element 6")):
        for laid in (arrays, tuple(map(np.asfortranarray, arrays))):
            with pytest.raises(InvalidInput, match=f"^{what}$"):
                reducer.on_gpu(laid[0], AlongAxes((0,)), "dot", NanPolicy.RAISE, other=laid[1])
