"""Reductions along axes and by segments, held against the definition of each op in exact fractions, value by value."""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache
from math import nan, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.kernels.conformance import same
from tests.support.kernels.patterns import array_of_bits
from warpfold.kernels.backend import GroupedReduction
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cpu.grouped import reducing
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState
from warpfold.kernels.ops import OPS, NanPolicy, Op, Terms, Value, reference
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.source import ArraySource, GeneratedSource
from warpfold.kernels.sources.sequential import SequentialSource

ROUNDING = [op for op in OPS.values() if op.multiplies]


@cache
def backend() -> CpuBackend:
    return CpuBackend(8 << 20)


def patterns(array: NDArray[Any]) -> list[int]:
    return [int(word) for word in np.ascontiguousarray(array).reshape(-1).view(f"uint{8 * array.itemsize}")]


def members(array: NDArray[Any], grouping: Grouping) -> Iterator[NDArray[Any]]:
    """The elements of each value, in C order of the values."""
    if isinstance(grouping, Segments):
        flat = array.reshape(-1)
        bounds = grouping.offsets or (*range(0, flat.size, grouping.length or 1), flat.size)
        yield from (flat[start:stop] for start, stop in itertools.pairwise(bounds))
        return
    gone = grouping.reduced(array.ndim)
    kept = [axis for axis in range(array.ndim) if axis not in gone]
    moved = array.transpose(*kept, *sorted(gone))
    outer = [array.shape[axis] for axis in kept]
    for index in np.ndindex(*outer):
        yield np.ascontiguousarray(moved[index]).reshape(-1)


def defined(
    op: Op, arrays: Sequence[NDArray[Any]], dtypes: Sequence[DType], policy: NanPolicy, ddof: int
) -> tuple[Value | None, int]:
    """The value and the count of one group, by definition."""
    if len(arrays) == 2:
        pairs = [(dtype, patterns(array)) for dtype, array in zip(dtypes, arrays, strict=True)]
        answer = reference.of_pairs(op, pairs[0], pairs[1], policy)
    else:
        answer = reference.reduce(op, dtypes[0], patterns(arrays[0]), policy, ddof=ddof)
    if isinstance(answer, reference.Undefined):
        elements = [reference.element(bits, dtypes[0]) for bits in patterns(arrays[0])]
        return None, sum(not (element.nan and policy is NanPolicy.OMIT) for element in elements)
    return answer.value, answer.count


def reduced(
    array: NDArray[Any],
    grouping: Grouping,
    op: str,
    *,
    other: NDArray[Any] | None = None,
    policy: NanPolicy = NanPolicy.PROPAGATE,
    ddof: int = 0,
) -> GroupedReduction:
    return backend().reduce_groups(
        ArraySource(array),
        array.shape,
        grouping,
        op,
        nan_policy=policy,
        ddof=ddof,
        other=None if other is None else ArraySource(other),
    )


def check(
    array: NDArray[Any],
    dtype: DType,
    grouping: Grouping,
    op: Op,
    *,
    policy: NanPolicy = NanPolicy.PROPAGATE,
    ddof: int = 0,
    other: NDArray[Any] | None = None,
) -> None:
    result = reduced(array, grouping, op.name, policy=policy, ddof=ddof, other=other)
    both = [members(array, grouping)] + ([] if other is None else [members(other, grouping)])
    wanted = [defined(op, group, [dtype] * len(group), policy, ddof) for group in zip(*both, strict=True)]
    assert len(result.values) == len(wanted) == prod(result.shape)
    where = (op.name, dtype.name, array.shape, grouping, policy, result.kernel)
    for number, (value, (exact, count)) in enumerate(zip(result.values, wanted, strict=True)):
        agree = value is exact is None or (value is not None and exact is not None and same(value, exact))
        assert agree, (where, number, value, exact)
        assert result.counts[number] == count, (where, number)
    assert result.correctly_rounded


@np.errstate(all="ignore")
def hostile(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """Elements that cancel, that lie far apart, zeros of both signs and, of floats, a few that are not finite."""
    count = prod(shape)
    if not dtype.is_float:
        low, high = dtype.bounds
        edges = [low, high, 0, 1, low // 2, high - 1]
        choice = rng.integers(0, 8, count)
        small = rng.integers(max(low, -9), min(high, 9) + 1, count)
        return np.array(
            [edges[at] if at < 6 else number for at, number in zip(choice.tolist(), small.tolist(), strict=True)]
        , dtype=dtype.numpy).reshape(shape)  # fmt: skip
    width = 8 * dtype.itemsize
    bits = rng.integers(0, 1 << width, count, dtype=np.uint64)
    finite = array_of_bits([int(pattern) for pattern in bits], dtype)
    wide = finite.astype(np.float64)
    plain = rng.normal(size=count).astype(dtype.numpy)
    kind = rng.integers(0, 12, count)
    array = np.where(kind < 2, np.where(np.isfinite(wide), finite, plain), plain)
    array[kind == 3] = 0.0
    array[kind == 4] = -0.0
    array[1::2] = np.where(kind[1::2] > 8, -array[:-1:2][: array[1::2].size], array[1::2])  # cancel
    special = rng.integers(0, 40, count)
    array[special == 0] = nan
    array[special == 1] = np.inf
    array[special == 2] = -np.inf
    return array.reshape(shape)


GROUPINGS: list[tuple[tuple[int, ...], Grouping]] = [
    ((6, 5), AlongAxes((1,))),
    ((6, 5), AlongAxes((0,))),
    ((6, 5), AlongAxes((-1, 0))),
    ((3, 4, 5), AlongAxes((1,))),
    ((3, 4, 5), AlongAxes((0, 2), keepdims=True)),
    ((30,), Segments((0, 0, 3, 3, 17, 29))),
    ((5, 6), Segments(length=7)),
]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("op", [op for op in OPS.values() if op.terms is not Terms.TOTALS], ids=lambda op: op.name)
def test_every_value_is_the_correctly_rounded_one(op: Op, dtype: DType) -> None:
    rng = np.random.default_rng([len(op.name), dtype.itemsize])
    if op in ROUNDING and dtype.is_float:
        return  # by NumPy, below
    for shape, grouping in GROUPINGS:
        array = hostile(rng, dtype, shape)
        other = hostile(rng, dtype, shape) if op.sources == 2 else None
        for policy in (NanPolicy.PROPAGATE, NanPolicy.OMIT):
            check(array, dtype, grouping, op, policy=policy, ddof=int(op.ddof), other=other)
        if op.sources == 1:
            check(np.asfortranarray(array), dtype, grouping, op, policy=NanPolicy.OMIT)


@pytest.mark.parametrize("piece", [1, 7, 64])
@pytest.mark.parametrize("op", ["sum", "mean", "std", "argmin", "max", "all", "norm1", "dot"])
def test_parts_and_threads_do_not_show(op: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However an array is cut and however many threads there are, the values are the same."""
    rng = np.random.default_rng(5)
    monkeypatch.setattr(reducing, "ARRAY_PIECE", piece)
    for threads in (1, 3):
        monkeypatch.setattr(reducing, "usable_cores", lambda threads=threads: threads)
        for dtype in (DTYPES["float32"], DTYPES["int64"]):
            for shape, grouping in GROUPINGS:
                array = hostile(rng, dtype, shape)
                other = hostile(rng, dtype, shape) if op == "dot" else None
                check(array, dtype, grouping, OPS[op], policy=NanPolicy.OMIT, other=other)


@pytest.mark.parametrize("op", ["sum", "mean", "std", "norm2", "max"])
def test_an_order_within_the_values_does_not_show(op: str) -> None:
    rng = np.random.default_rng(11)
    array = (rng.standard_normal((40, 30)) * np.exp2(rng.integers(-60, 60, (40, 30)))).astype(np.float64)
    offsets = (0, 7, 7, 400, 1200)
    shuffled = np.concatenate([rng.permutation(part) for part in np.split(array.reshape(-1), offsets[1:-1])])
    for first, second, grouping in (
        (array, rng.permuted(array, axis=1), AlongAxes((1,))),
        (array, rng.permuted(array, axis=0), AlongAxes((0,))),
        (array, shuffled.reshape(40, 30), Segments(offsets)),
    ):
        assert repr(reduced(first, grouping, op).listed()) == repr(reduced(second, grouping, op).listed())


@pytest.mark.parametrize("scale", [0, 4, 60], ids=["narrow", "wide", "all exponents"])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("op", ["sum", "mean", "norm1", "var"])
def test_columns_and_rows_of_one_matrix_have_the_same_bits(op: str, name: str, scale: int) -> None:
    """By the loops for columns, for rows, and by segments: of numbers near each other, far apart, and not finite."""
    rng = np.random.default_rng(scale)
    shape = (70, 130) if scale else (300, 40)
    with np.errstate(all="ignore"):
        matrix = (rng.normal(size=shape) * np.exp(scale * rng.normal(size=shape))).astype(DTYPES[name].numpy)
        matrix[:, 3] = -0.0
        matrix[5, 4], matrix[6, 4], matrix[7, 5] = np.inf, -np.inf, nan
    down = reduced(matrix, AlongAxes((0,)), op)
    assert down.kernel == "columns"
    turned = np.ascontiguousarray(matrix.T)
    across = reduced(turned, AlongAxes((1,)), op)
    assert across.kernel == "rows"
    pieces = reduced(turned.reshape(-1), Segments(length=shape[0]), op)
    fortran = reduced(np.asfortranarray(matrix), AlongAxes((0,)), op)
    assert bits(down) == bits(across) == bits(pieces) == bits(fortran)
    for column in (0, 3, 4, 5, 11):
        exact, _ = defined(OPS[op], [np.ascontiguousarray(matrix[:, column])], [DTYPES[name]], NanPolicy.PROPAGATE, 0)
        value = down.values[column]
        assert value is not None
        assert exact is not None
        assert same(value, exact), (op, name, column)


def bits(reduction: GroupedReduction) -> list[str]:
    return [repr(value) for value in reduction.values]


@given(
    st.sampled_from([DTYPES[name] for name in ("float32", "float64", "float16")]),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.sampled_from([0, 1, -1]),
    st.sampled_from([OPS[name] for name in ("sum", "mean", "norm2", "sum_squares")]),
    st.data(),
)
@settings(max_examples=60)
def test_whatever_the_shape_and_the_patterns(
    dtype: DType, shape: tuple[int, int], axis: int, op: Op, data: st.DataObject
) -> None:
    count = prod(shape)
    words = st.integers(0, (1 << 8 * dtype.itemsize) - 1)
    drawn = data.draw(st.lists(words, min_size=count, max_size=count))
    check(array_of_bits(drawn, dtype).reshape(shape), dtype, AlongAxes((axis,)), op)


def test_arrays_without_elements_have_empty_values() -> None:
    assert reduced(np.zeros((0, 3), np.float32), AlongAxes((0,)), "sum").values == (0.0, 0.0, 0.0)
    assert reduced(np.zeros((0, 3), np.int8), AlongAxes((0,)), "prod").values == (1, 1, 1)
    assert reduced(np.zeros((2, 0), np.float32), AlongAxes((1,)), "max").values == (None, None)
    assert reduced(np.zeros((2, 0), np.float32), AlongAxes((0,)), "max").values == ()
    assert reduced(np.zeros((1, 1)), AlongAxes((0, 1)), "all").shape == ()
    kept = reduced(np.ones((2, 3, 1)), AlongAxes((-2,), keepdims=True), "count_nonzero")
    assert (kept.shape, kept.values) == ((2, 1, 1), (3, 3))
    assert reduced(np.full((2, 2), nan), AlongAxes((0,)), "mean", policy=NanPolicy.OMIT).values == (None, None)
    assert reduced(np.ones((2, 1)), AlongAxes((1,)), "var", ddof=1).values == (None, None)


def test_the_source_decides_how_it_is_read_and_not_the_values() -> None:
    """A source that makes its elements, one that comes in order, and a map with strides of its own."""
    made = GeneratedSource("normal", 600, 7, DTYPES["float32"])
    array = made.read(0, 600).reshape(5, 6, 20)
    for grouping in (AlongAxes((1,)), AlongAxes((0, 2)), AlongAxes((2,)), Segments(length=77)):
        expected = bits(reduced(array, grouping, "sum"))
        in_order = SequentialSource(DTYPES["float32"], lambda: iter(np.split(array.reshape(-1), [1, 8, 300])), 600)
        for source in (made, in_order):
            assert bits(backend().reduce_groups(source, (5, 6, 20), grouping, "sum")) == expected
    strided = np.repeat(array, 2, axis=2)[:, :, ::2]
    assert bits(reduced(strided, AlongAxes((1,)), "sum")) == bits(reduced(array, AlongAxes((1,)), "sum"))


def test_an_index_of_several_axes_counts_in_c_order() -> None:
    array = np.zeros((2, 3, 4))
    array[1, 1, 2] = 5
    for layout in (array, np.asfortranarray(array)):
        assert reduced(layout, AlongAxes((0, 2)), "argmax").values == (0, 6, 0)


@pytest.mark.parametrize("name", ["float64", "float32", "float16"])
@pytest.mark.parametrize("columns", [1, 2, 3, 5, 8, 9])
def test_short_rows_are_rounded_once_where_sums_lie_between_two_numbers(name: str, columns: int) -> None:
    row, rng = DTYPES[name], np.random.default_rng(columns)
    halves = 2.0 ** -np.array([11.0, 12.0, 24.0, 25.0, 53.0, 54.0, 78.0, 110.0])
    edges = np.concatenate([halves, -halves, [0.0, -0.0, 1.0, -1.0, 1.5, 65504.0, np.inf, 1 + 2.0**-23, 1 + 2.0**-52]])
    with np.errstate(all="ignore"):
        array = (rng.choice(edges, (400, columns)) * 2.0 ** rng.integers(-2, 3, (400, 1))).astype(row.numpy)
        array[::7] = (array[::7].astype(np.float64) * 1e-300).astype(row.numpy)
    for op in ("sum", "norm1"):
        values = reduced(array, AlongAxes((1,)), op).values
        for elements, value in zip(array, values, strict=True):
            expected = ExactState.of(elements, magnitudes=op == "norm1").round_to(row)
            assert same(value, expected), (elements, value, expected)


def test_products_of_floats_are_those_of_numpy_and_say_so() -> None:
    array = np.array([[1.5, nan, 2.0], [0.1, 0.2, 0.3]], np.float32)
    result = reduced(array, AlongAxes((1,)), "prod", policy=NanPolicy.OMIT)
    assert result.values == (3.0, float(np.float32(0.1) * np.float32(0.2) * np.float32(0.3)))
    assert (result.counts, result.strategy, result.correctly_rounded) == ((2, 3), "numpy", False)
    assert reduced(array, Segments((0, 1, 1, 3)), "prod").values[1] == 1.0
    assert math.isnan(float(reduced(array, AlongAxes((0,), keepdims=True), "prod").values[1] or 0))


def test_a_nan_that_is_refused_is_named_by_its_index_in_c_order() -> None:
    array = np.zeros((3, 4))
    array[1, 2] = nan
    for layout in (array, np.asfortranarray(array)):
        with pytest.raises(InvalidInput, match="element 6 is NaN"):
            reduced(layout, AlongAxes((0,)), "sum", policy=NanPolicy.RAISE)


def test_what_does_not_fit_is_told_with_its_field() -> None:
    for grouping, field in (
        (AlongAxes((2,)), "axis"),
        (AlongAxes((0, -2)), "axis.1"),
        (Segments((0, 7)), "segments.offsets.1"),
    ):
        with pytest.raises(InvalidInput) as refused:
            reduced(np.zeros((2, 3)), grouping, "sum")
        assert refused.value.field == field
    with pytest.raises(InvalidInput) as refused:
        backend().reduce_groups(ArraySource(np.zeros((2, 3))), (2, 3), AlongAxes((0,)), "sum", strategy="numpy")
    assert refused.value.field == "strategy"
