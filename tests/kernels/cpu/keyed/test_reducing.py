"""Reductions by key, held against the definition of each op in exact fractions, group by group."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from math import fsum, inf, nan
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.kernels.conformance import same
from tests.support.kernels.patterns import array_of_bits
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cpu.keyed import reducing
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import OPS, NanPolicy, Op, Terms, Value, empty_value, reference
from warpfold.kernels.parts.keyed import Aggregation, Cells, GroupPlan, GroupTable, KeyedPart, KeyedRows, KeyedSource

OF_ONE = [op for op in OPS.values() if op.sources == 1 and op.terms is not Terms.TOTALS]


@cache
def backend() -> CpuBackend:
    return CpuBackend(8 << 20)


def rows_of(keys: Sequence[Any], columns: Sequence[tuple[DType, Cells]], cuts: Sequence[int] = ()) -> KeyedSource:
    """Arrays side by side, cut into parts at these rows."""
    count = len(keys[0])
    edges = sorted({0, *cuts, count})

    def read(start: int, stop: int) -> KeyedRows:
        cells = (
            Cells(cells.elements[start:stop], None if cells.missing is None else cells.missing[start:stop])
            for _, cells in columns
        )
        return KeyedRows(start, tuple(array.slice(start, stop - start) for array in keys), tuple(cells))

    def begin() -> Iterator[KeyedPart]:
        for start, stop in itertools.pairwise(edges):
            yield KeyedPart(start, stop, partial(read, start, stop))

    names = tuple(f"column {number}" for number in range(len(columns)))
    kinds = tuple(array.type for array in keys)
    dtypes = tuple(dtype for dtype, _ in columns)
    return KeyedSource(tuple(f"key {at}" for at in range(len(keys))), kinds, names, dtypes, begin, count)


def plan(*ops: str, ddof: int = 0, **rest: Any) -> GroupPlan:
    aggregations = (Aggregation(OPS[op], 0, f"{op} {at}", ddof if OPS[op].ddof else 0) for at, op in enumerate(ops))
    return GroupPlan(tuple(aggregations), **rest)


def folded(source: KeyedSource, asked: GroupPlan, threads: int, *, compiled: bool = True) -> GroupTable:
    """The groups of parts that are dealt out to so many folds, which are put together at the end."""
    places = reducing._places(source, asked)
    folds = [reducing._Groups(source, asked, places, compiled=compiled) for _ in range(threads)]
    for number, part in enumerate(source.begin()):
        folds[number % threads].add(part.start, part.read())
    for fold in folds[1:]:
        folds[0].merge(fold)
    return folds[0].table(0.0)


@np.errstate(all="ignore")
def hostile(rng: np.random.Generator, dtype: DType, count: int) -> NDArray[Any]:
    """Elements that cancel, that lie far apart, zeros of both signs and, of floats, a few that are not finite."""
    if not dtype.is_float:
        low, high = dtype.bounds
        edges = np.array([low, high, 0, 1, low // 2, high - 1, min(high, 9)], object)
        return edges[rng.integers(0, edges.size, count)].astype(dtype.numpy)
    bits = rng.integers(0, 1 << 8 * dtype.itemsize, count, dtype=np.uint64)
    wild = array_of_bits([int(pattern) for pattern in bits], dtype)
    array = rng.normal(size=count).astype(dtype.numpy)
    kind = rng.integers(0, 12, count)
    usable = np.isfinite(wild.astype(np.float64)) & (kind < 2)
    array[usable] = wild[usable]
    array[kind == 3], array[kind == 4] = 0.0, -0.0
    array[1::2] = np.where(kind[1::2] > 8, -array[:-1:2], array[1::2])
    for number, special in enumerate((nan, inf, -inf)):
        array[rng.integers(0, 60, count) == number] = special
    return array


def defined(op: Op, dtype: DType, elements: NDArray[Any], policy: NanPolicy, *, ddof: int, places: Any) -> Value | None:
    """The value of one group by definition; `places` are the rows of its elements."""
    bits = [int(word) for word in np.ascontiguousarray(elements).view(f"uint{8 * elements.itemsize}")]
    answer = reference.reduce(op, dtype, bits, policy, ddof=ddof)
    if isinstance(answer, reference.Undefined):
        return None
    if answer.count == 0:
        return None if op.empty is None else empty_value(op, dtype)
    return int(places[answer.value]) if op.places else answer.value


def check(
    grouped: GroupTable, dtype: DType, cells: Cells, groups: NDArray[Any], policy: NanPolicy, *, ddof: int = 0
) -> None:
    """`groups` numbers the group of each row, in the order of the table."""
    present = np.ones(groups.size, np.bool_) if cells.missing is None else ~cells.missing
    for column in grouped.columns:
        values = column.listed()
        for group in range(grouped.sizes.size):
            rows = np.flatnonzero((groups == group) & present)
            wanted = defined(OPS[column.op], dtype, cells.elements[rows], policy, ddof=ddof, places=rows)
            value = values[group]
            agree = value is wanted is None or (value is not None and wanted is not None and same(value, wanted))
            assert agree, (column.op, dtype.name, policy, group, value, wanted, cells.elements[rows])


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_every_value_of_every_op_is_the_correctly_rounded_one(dtype: DType) -> None:
    rng = np.random.default_rng(dtype.itemsize)
    count, groups = 180, 9
    cells = Cells(hostile(rng, dtype, count), rng.random(count) < 0.1)
    keys = rng.integers(0, groups, count)
    keys[:groups] = np.arange(groups)
    cells.missing[keys == 5] = True  # type: ignore[index]  # a group of nulls alone
    ops = [op.name for op in OF_ONE if op.adds or not (op.rounds and dtype.is_float)]
    source = rows_of([pyarrow.array(keys.astype(np.int16))], [(dtype, cells)], cuts=range(0, count, 37))
    for policy in (NanPolicy.PROPAGATE, NanPolicy.OMIT):
        for threads, compiled in itertools.product((1, 3), (True, False)):
            grouped = folded(source, plan(*ops, ddof=1, nan_policy=policy), threads, compiled=compiled)
            assert grouped.sizes.tolist() == np.bincount(keys).tolist()
            check(grouped, dtype, cells, keys, policy, ddof=1)


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("scale", [0, 1, 6, 40], ids=["normal", "lognormal", "wide", "all exponents"])
def test_data_over_many_exponents_has_the_same_bits_in_any_order(name: str, scale: int) -> None:
    """Two levels, four levels, and limbs of single groups: the values do not tell which of them added an element."""
    dtype = DTYPES[name]
    rng = np.random.default_rng(scale)
    count, groups = 1000, 20
    with np.errstate(over="ignore"):
        data = (rng.normal(size=count) * np.exp(scale * rng.normal(size=count))).astype(dtype.numpy)
    keys = rng.integers(0, groups, count)
    ops = ("sum", "mean", "norm1", "sum_squares", "norm2", "std")
    tables = []
    for order, cuts in ((np.arange(count), (300, 301, 800)), (rng.permutation(count), range(0, count, 500))):
        source = rows_of([pyarrow.array(keys[order])], [(dtype, Cells(data[order]))], cuts)
        tables.append(folded(source, plan(*ops), threads=2))
    check(tables[0], dtype, Cells(data), keys, NanPolicy.PROPAGATE)
    for first, second in zip(tables[0].columns, tables[1].columns, strict=True):
        assert first.values.tobytes() == second.values.tobytes(), first.op


@pytest.mark.parametrize("parts", [[1.0, 1e300, -1e300], [1e-320, 1.5, -1e-320], [-0.0, -0.0], [1e308, 1e308, -1e308]])
def test_levels_move_where_later_parts_are_elsewhere(parts: list[float]) -> None:
    """Each part has one magnitude, so that levels that fit the first do not hold the next."""
    data = np.repeat(np.array(parts), 8)
    keys = np.tile([0, 1], data.size // 2)
    dtype = DTYPES["float64"]
    source = rows_of([pyarrow.array(keys)], [(dtype, Cells(data))], cuts=range(0, data.size, 8))
    for threads in (1, 2, 3):
        grouped = folded(source, plan("sum", "sum_squares", "mean"), threads)
        check(grouped, dtype, Cells(data), keys, NanPolicy.PROPAGATE)


@pytest.mark.parametrize("places", [[0], [999], [0, 1, 2], [5, 400, 401, 999], list(range(0, 1000, 20))])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_a_few_elements_beside_the_levels_lose_nothing(name: str, places: list[int]) -> None:
    dtype, rng = DTYPES[name], np.random.default_rng(len(places))
    values = rng.normal(size=2000).astype(dtype.numpy)  # the second part has elements that the levels do not hold
    values[1000:][places] = rng.choice(np.array([1e-38, -1e-38, 1e35, -1e35], dtype.numpy), len(places))
    keys = rng.integers(0, 3, 2000).astype(np.int32)
    table = folded(rows_of([pyarrow.array(keys)], [(dtype, Cells(values))], [1000]), plan("sum"), 1)
    for key, total, count in zip(
        table.keys[0].to_pylist(), table.columns[0].values, table.columns[0].counts, strict=True
    ):
        assert total == dtype.numpy.type(fsum(values[keys == key].tolist()))
        assert count == np.count_nonzero(keys == key)


def test_a_level_carries_before_it_is_full() -> None:
    """More elements of one sign than a level holds without carries, in one group."""
    count = (1 << 21) + 5
    data = np.full(count, 1.75, np.float32)
    source = rows_of([pyarrow.array(np.zeros(count, np.int8))], [(DTYPES["float32"], Cells(data))])
    grouped = backend().group_by(source, plan("sum", "mean"))
    assert [column.listed() for column in grouped.columns] == [[float(np.float32(1.75 * count))], [1.75]]


KEYS: dict[str, list[Any]] = {
    **{name: [3, 0, 100, 3] for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")},
    "far apart": [-(2**63), 2**63 - 1, 0, -(2**63)],
    "uint64": [2**64 - 1, 0, 2**63, 2**64 - 1],
    "bool": [True, False, True, True],
    "string": ["b", "", "ä", "b"],
    "large_string": ["b", "", "ä", "b"],
    "string_view": ["b", "", "ä", "b"],
}


KEY_NAMES = [*KEYS, "dictionary"]


def key_array(kind: str) -> Any:
    if kind == "dictionary":  # with a null and a key that no row has
        words = pyarrow.array(["z", "b", None, "a"])
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array([1, 3, None, 1], pyarrow.int8()), words)
    values = [KEYS[kind][0], KEYS[kind][1], None, KEYS[kind][3]]
    return pyarrow.array(values, pyarrow.int64() if kind == "far apart" else pyarrow.type_for_alias(kind))


@pytest.mark.parametrize("kind", KEY_NAMES)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_keys_of_every_type_with_nulls_kept_or_dropped(kind: str, keep: bool, compiled: bool) -> None:
    keys = key_array(kind)
    cells = Cells(np.array([1.0, 2.0, 4.0, 8.0]))
    listed = (keys.dictionary_decode() if kind == "dictionary" else keys).to_pylist()
    wanted = {listed[0]: 9.0, listed[1]: 2.0, **({None: 4.0} if keep else {})}
    for cuts in ((), (1, 2, 3)):
        for threads in (1, 2):
            source = rows_of([keys], [(DTYPES["float64"], cells)], cuts)
            grouped = folded(source, plan("sum", keep_nulls=keep, sort=False), threads, compiled=compiled)
            assert list(zip(grouped.keys[0].to_pylist(), grouped.columns[0].listed(), strict=True)) == list(
                wanted.items()
            ) or (keep and sorted(map(str, wanted)) == sorted(map(str, grouped.keys[0].to_pylist())))
            assert dict(zip(grouped.keys[0].to_pylist(), grouped.columns[0].listed(), strict=True)) == wanted
            assert grouped.dropped == (0 if keep else 1)
            ordered = folded(source, plan("sum", keep_nulls=keep), threads, compiled=compiled).keys[0].to_pylist()
            present = sorted(key for key in wanted if key is not None)
            assert ordered == present + ([None] if keep else [])


@pytest.mark.parametrize("compiled", [True, False])
def test_groups_of_several_keys_come_sorted_or_as_they_appear(compiled: bool) -> None:
    words = pyarrow.array(["b", "a", "b", None, "a", "b"])
    years = pyarrow.array([2, 1, 2, 1, None, 1], pyarrow.int16())
    flags = pyarrow.array([True, True, True, False, False, True])
    cells = Cells(np.arange(6))
    source = rows_of([words, years, flags], [(DTYPES["int64"], cells)], cuts=(2, 4))
    grouped = folded(source, plan("sum", "argmax", sort=False, keep_nulls=True), 2, compiled=compiled)
    listed = list(zip(*(array.to_pylist() for array in grouped.keys), grouped.columns[0].listed(), strict=True))
    assert listed == [
        ("b", 2, True, 2), ("a", 1, True, 1), (None, 1, False, 3), ("a", None, False, 4), ("b", 1, True, 5),
    ]  # fmt: skip
    grouped = folded(source, plan("sum"), 2, compiled=compiled)
    listed = list(zip(*(array.to_pylist() for array in grouped.keys), grouped.columns[0].listed(), strict=True))
    assert listed == [("a", 1, True, 1), ("b", 1, True, 5), ("b", 2, True, 2)]
    assert (grouped.rows, grouped.dropped) == (4, 2)


def test_a_value_of_fewer_than_min_count_elements_is_missing() -> None:
    cells = Cells(np.array([1, 2, 3]), np.array([False, True, False]))
    source = rows_of([pyarrow.array([0, 1, 0])], [(DTYPES["int64"], cells)])
    grouped = folded(source, plan("sum", "min"), 1)
    assert [column.listed() for column in grouped.columns] == [[4, 0], [1, None]]
    grouped = folded(source, plan("sum", "min", min_count=2), 1)
    assert [column.listed() for column in grouped.columns] == [[4, None], [1, None]]
    assert grouped.table().to_pydict() == {"key 0": [0, 1], "sum 0": [4, None], "min 1": [1, None]}


def test_more_groups_than_are_allowed_are_refused_with_their_number() -> None:
    source = rows_of([pyarrow.array(np.arange(100))], [(DTYPES["int64"], Cells(np.arange(100)))])
    assert backend().group_by(source, plan("sum", max_groups=100)).sizes.size == 100
    with pytest.raises(InvalidInput, match="more than 99 groups: 100 were reached") as caught:
        backend().group_by(source, plan("sum", max_groups=99))
    assert caught.value.field == "max_groups"


def test_a_nan_is_refused_with_its_row_and_column() -> None:
    source = rows_of([pyarrow.array([1, None, 1])], [(DTYPES["float32"], Cells(np.array([1, nan, nan], np.float32)))])
    with pytest.raises(InvalidInput, match="row 2 of 'column 0' is NaN") as caught:
        backend().group_by(source, plan("sum", nan_policy=NanPolicy.RAISE))
    assert caught.value.field == "nan_policy"


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_partition_and_any_order_have_equal_bytes(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 40))
    values = data.draw(st.lists(st.floats(), min_size=count, max_size=count))
    keys = data.draw(st.lists(st.one_of(st.none(), st.integers(-3, 3)), min_size=count, max_size=count))
    order = data.draw(st.permutations(range(count)))
    cuts = data.draw(st.sets(st.integers(0, count)))
    threads = data.draw(st.integers(1, 3))
    asked = plan("sum", "mean", "var", "min", "norm2", "count_nonzero", keep_nulls=True, states=True)
    compiled = data.draw(st.booleans())
    array, column = pyarrow.array(keys, pyarrow.int32()), np.array(values)
    whole = folded(rows_of([array], [(DTYPES["float64"], Cells(column))]), asked, 1)
    moved = [array.take(pyarrow.array(order)), Cells(column[list(order)])]
    parts = folded(
        rows_of([moved[0]], [(DTYPES["float64"], moved[1])], sorted(cuts)), asked, threads, compiled=compiled
    )
    assert whole.keys[0].equals(parts.keys[0])
    for first, second in zip(whole.columns, parts.columns, strict=True):
        assert [repr(value) for value in first.listed()] == [repr(value) for value in second.listed()]
        assert first.counts.tolist() == second.counts.tolist()
        assert [states.data.tobytes() for states in first.states] == [states.data.tobytes() for states in second.states]


@pytest.mark.parametrize("compiled", [False, True])
def test_states_alone_are_those_beside_values(compiled: bool) -> None:
    source = rows_of([pyarrow.array([1, 2, 1, 1])], [(DTYPES["float32"], Cells(np.array([1, nan, 3, 5], np.float32)))])
    asked = plan("sum", "var", "norm2", states=True)
    alone = replace(asked, aggregations=tuple(replace(each, state_only=True) for each in asked.aggregations))
    with_values, bare = (folded(source, each, 1, compiled=compiled) for each in (asked, alone))
    assert with_values.described == bare.described
    for first, second in zip(with_values.columns, bare.columns, strict=True):
        assert first.counts.tolist() == second.counts.tolist()
        assert [states.data.tobytes() for states in first.states] == [states.data.tobytes() for states in second.states]
        assert second.listed() == [None, None], second.op


def test_many_keys_that_are_far_apart_are_told_apart_by_hash() -> None:
    rng = np.random.default_rng(0)
    known = rng.integers(-(1 << 62), 1 << 62, 5000)
    keys = known[rng.integers(0, known.size, 40_000)]
    ones = Cells(np.ones(keys.size))
    source = rows_of([pyarrow.array(keys)], [(DTYPES["float64"], ones)], cuts=range(0, keys.size, 3000))
    grouped = folded(source, plan("sum"), threads=2)
    present, counts = np.unique(keys, return_counts=True)
    assert grouped.keys[0].to_pylist() == present.tolist()
    assert grouped.columns[0].listed() == counts.tolist()


def test_several_columns_and_ops_come_in_one_pass() -> None:
    cells = [
        (DTYPES["float64"], Cells(np.array([1.0, 2.0, 4.0]))),
        (DTYPES["uint8"], Cells(np.array([255, 255, 3], np.uint8))),
    ]
    source = rows_of([pyarrow.array(["x", "y", "x"])], cells)
    asked = replace(
        plan("sum"),
        aggregations=(
            Aggregation(OPS["mean"], 0, "a"),
            Aggregation(OPS["sum"], 1, "b"),
            Aggregation(OPS["max"], 0, "c"),
        ),
    )
    table = backend().group_by(source, asked).table()
    assert table.to_pydict() == {"key 0": ["x", "y"], "a": [2.5, 2.0], "b": [258, 255], "c": [4.0, 2.0]}
