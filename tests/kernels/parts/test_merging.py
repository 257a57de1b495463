"""Tables of exact states: those of any shards, merged, are the table of the whole."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from math import isnan
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Wanted, frame_of, keyed_frame
from warpfold.kernels.ops import NanPolicy, op_named
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan
from warpfold.kernels.parts.merging import MergePlan, StatesTable, merge_tables
from warpfold.kernels.parts.state_tables import METADATA

OPS = [("sum", 0), ("mean", 0), ("norm1", 0), ("var", 0), ("norm2", 0), ("sum", 1), ("mean", 1), ("std", 1)]
EDGES = [0.0, -0.0, 1e16, -1e16, 1.5, 5e-324, 1e300, None, np.nan, np.inf]


@cache
def backend() -> CpuBackend:
    return CpuBackend(8 << 20)


def table_of(rows: Sequence[tuple[Any, ...]]) -> pyarrow.Table:
    columns = list(zip(*rows, strict=True)) or [()] * 4
    kinds = [pyarrow.int32(), pyarrow.string(), pyarrow.float64(), pyarrow.int64()]
    arrays = [pyarrow.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pyarrow.Table.from_arrays(arrays, names=["k", "word", "x", "i"])


def grouped(
    table: pyarrow.Table, *, ops: Sequence[tuple[str, int]] = OPS, by: Sequence[str] = ("k", "word"), **options: Any
) -> pyarrow.Table:
    aggregations = tuple(Aggregation(op_named(op), column, f"{op}{column}") for op, column in ops)
    source = keyed_frame(
        frame_of(table),
        [Wanted(key, key, f"by.{at}") for at, key in enumerate(by)],
        [Wanted("x", "x", "x"), Wanted("i", "i", "i")],
        refuse_nulls=False,
    )
    return backend().group_by(source, GroupPlan(aggregations, states=True, **options)).table()


def merged(tables: Sequence[pyarrow.Table], **plan: Any) -> pyarrow.Table:
    named = [StatesTable.of(frame_of(table), f"tables.{index}") for index, table in enumerate(tables)]
    return merge_tables(named, MergePlan(**plan)).table()


rows = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, None]),
        st.sampled_from(["a", "b", None]),
        st.sampled_from(EDGES),
        st.integers(-(1 << 62), 1 << 62),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None)
@given(
    rows,
    st.lists(st.integers(0, 25), max_size=3),
    st.booleans(),
    st.sampled_from(list(NanPolicy)[:2]),
    st.sampled_from([("k",), ("word",), ("k", "word")]),
)
def test_shards_merge_to_the_table_of_the_whole_bit_by_bit(
    rows: list[tuple[Any, ...]], cuts: list[int], sort: bool, policy: NanPolicy, by: tuple[str, ...]
) -> None:
    edges = [0, *sorted(cuts), 25]
    shards = [rows[start:stop] for start, stop in pairwise(edges)]
    options: dict[str, Any] = {"sort": sort, "nan_policy": policy, "keep_nulls": True, "by": by}
    whole = grouped(table_of(rows), **options)
    result = merged([grouped(table_of(shard), **options) for shard in shards], sort=sort)
    assert result.schema.equals(whole.schema, check_metadata=True)
    # As bytes, for a NaN is equal to no other, and a zero has a sign.
    for name in whole.column_names:
        assert bits(result[name]) == bits(whole[name]), name


def bits(column: pyarrow.ChunkedArray) -> list[Any]:
    if pyarrow.types.is_floating(column.type):
        return [None if value is None else "nan" if isnan(value) else value.hex() for value in column.to_pylist()]
    listed: list[Any] = column.to_pylist()
    return listed


def test_groups_that_only_one_table_has_are_kept_in_either_order() -> None:
    left, right = (grouped(table_of([row])) for row in ((2, "b", 1e16, 1), (1, "a", 1.0, 2)))
    assert merged([left, right])["k"].to_pylist() == [1, 2]
    assert merged([left, right], sort=False)["k"].to_pylist() == [2, 1]
    assert merged([left, right])["rows"].to_pylist() == [1, 1]


@pytest.mark.parametrize("keys", [[None, 3, 1], [3, None, 1], [3, 1, None], [1, 3]])
def test_without_sorting_groups_come_in_the_order_of_the_tables_and_so_does_a_null(keys: list[int | None]) -> None:
    rows = [(key, None, 1.5, 1) for key in keys]
    table = grouped(table_of(rows), ops=[("sum", 0)], by=["k"], sort=False, keep_nulls=True)
    assert merged([table, table], sort=False)["k"].to_pylist() == keys
    assert merged([table.slice(1), table], sort=False)["k"].to_pylist() == [*keys[1:], keys[0]]


def test_min_count_counts_the_elements_of_all_tables() -> None:
    table = grouped(table_of([(1, "a", 1.0, 2)]), ops=[("sum", 0)])
    assert merged([table, table], min_count=2)["sum0"].to_pylist() == [2.0]
    assert merged([table, table], min_count=3)["sum0"].to_pylist() == [None]


def test_texts_of_other_types_are_the_same_keys() -> None:
    left, right = (grouped(table_of([row]), ops=[("sum", 0)]) for row in ((1, "a", 1.0, 1), (1, "a", 2.0, 1)))
    at = right.column_names.index("word")
    for kind in (pyarrow.large_string(), pyarrow.dictionary(pyarrow.int8(), pyarrow.string())):
        other = right.set_column(at, pyarrow.field("word", kind), right["word"].cast(kind))
        assert merged([left, other])["sum0"].to_pylist() == [3.0]
        assert merged([other, left])["sum0"].to_pylist() == [3.0]


def test_states_whose_offsets_lie_outside_of_their_bytes_are_refused() -> None:
    table = grouped(table_of([(1, "a", 1.0, 1), (2, "a", 2.0, 1)]), ops=[("sum", 0)])
    at = table.column_names.index("sum0_state")
    states = table["sum0_state"].combine_chunks()
    for middle in (1 << 40, -(1 << 40)):
        offsets = np.array([0, middle, states.buffers()[2].size])
        buffers = [None, pyarrow.py_buffer(offsets), states.buffers()[2]]
        damaged = pyarrow.Array.from_buffers(pyarrow.large_binary(), 2, buffers)
        with pytest.raises(
            InvalidInput, match="holds no states in 'sum0_state': length: the column is damaged"
        ) as caught:
            merged([table.set_column(at, "sum0_state", damaged)])
        assert caught.value.field == "tables.0"


Change = Callable[[pyarrow.Table], pyarrow.Table]


def described(table: pyarrow.Table, change: tuple[bytes, bytes]) -> pyarrow.Table:
    text = table.schema.metadata[METADATA]
    assert change[0] in text
    return table.replace_schema_metadata({METADATA: text.replace(*change)})


@cache
def base() -> pyarrow.Table:
    return grouped(table_of([(1, "a", 1.0, 2)]), ops=[("sum", 0), ("var", 0)])


def with_states(states: pyarrow.Array) -> Change:
    return lambda table: table.set_column(5, "sum0_state", states)


def edited(before: bytes, after: bytes) -> Change:
    return lambda table: described(table, (before, after))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edited(b'"op": "sum"', b'"op": "mean"'), "'sum0' with the op mean, and tables.0 sum"),
        (edited(b'"ddof": 0, "states": ["var0_s', b'"ddof": 1, "states": ["var0_s'), "with the ddof 1, and tables.0 0"),
        (
            edited(b'"dtypes": ["float64"], "result": "float64"', b'"dtypes": ["float32"], "result": "float32"'),
            "with the dtype float32, and tables.0 float64",
        ),
        (lambda table: table.set_column(0, "k", table["k"].cast("int64")), "key 'k' as int64, and tables.0 as int32"),
        (edited(b'"keys": ["k", "word"]', b'"keys": ["k"]'), "has keys (k), and tables.0 (k, word)"),
        (edited(b'"version": 1', b'"version": 2'), "version 2, and this is version 1"),
        (edited(b'"op": "sum"', b'"op": "max"'), "lacks the states of that op"),
        (edited(b'"sum0_state"', b'"gone"'), "no single column 'gone'"),
        (lambda table: table.replace_schema_metadata(None), "its schema says nothing about states"),
        (edited(b"{", b"["), "its schema describes no states"),
        (lambda table: table.set_column(4, "rows", pyarrow.array([None], "int64")), "no numbers of rows"),
        (with_states(pyarrow.array([None], pyarrow.large_binary())), "no states"),
        (with_states(pyarrow.array([b"WFXS\x02"], pyarrow.binary())), "version 2 is not known; this is version 1"),
    ],
)
def test_tables_that_do_not_fit_are_refused_by_name(change: Change, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        merged([base(), change(base())])
    assert caught.value.field == "tables.1"
    assert words in str(caught.value)


def test_too_many_groups_are_refused_with_the_number_that_was_reached() -> None:
    table = grouped(table_of([(key, "a", 1.0, 1) for key in range(5)]), ops=[("sum", 0)])
    with pytest.raises(InvalidInput, match="more than 4 groups: 5 were reached") as caught:
        merged([table], max_groups=4)
    assert caught.value.field == "max_groups"


def test_sums_and_squares_of_other_elements_are_refused() -> None:
    two = grouped(table_of([(1, "a", 1.0, 2), (1, "a", 2.0, 2)]), ops=[("sum", 0), ("var", 0)])
    at = base().column_names.index("var0_squares")
    with pytest.raises(InvalidInput, match="are not of the same elements"):
        merged([base().set_column(at, "var0_squares", two["var0_squares"])])
