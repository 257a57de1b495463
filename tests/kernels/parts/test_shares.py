"""Groups by key on several devices: the table of one device, whatever the shares are."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.gpu.adversarial import adversarial
from tests.support.kernels.keyed_rows import in_parts
from warpfold.kernels.aggregates.by_name import combines
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Wanted, frame_of, keyed_frame
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.ops import OPS, NanPolicy, Terms, op_named
from warpfold.kernels.parts import shares
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan, GroupTable, KeyedPart, KeyedSource
from warpfold.kernels.parts.shares import group_shares, shares_of
from warpfold.kernels.query import Answer, Query
from warpfold.kernels.source import ArraySource, GeneratedSource, generator_of

ROWS = 700
ASKED = tuple(op.name for op in OPS.values() if op.sources == 1 and combines(op) and op.terms is not Terms.TOTALS)


class Device(CpuBackend):
    """A device that counts the rows of its shares."""

    def __init__(self) -> None:
        super().__init__(8 << 20)
        self.rows = list[int]()

    def aggregate(self, query: Query[Answer], progress: Any = None) -> Answer:
        table = super().aggregate(query, progress)
        assert isinstance(table, GroupTable)
        self.rows.append(table.rows + table.dropped)
        return table


def plan_of(columns: int = 1, ops: tuple[str, ...] = ASKED, **options: Any) -> GroupPlan:
    asked = (Aggregation(op_named(op), column, f"{op} {column}") for column in range(columns) for op in ops)
    return GroupPlan(tuple(asked), **options)


def arrays(keys: Any, *columns: Any) -> KeyedSource:
    """Rows of arrays; keys are an array of NumPy, which are there by position, or of pyarrow."""
    held = ArraySource(keys) if isinstance(keys, np.ndarray) else keys
    named = [(f"x{number}", ArraySource(column), f"aggregations.{number}") for number, column in enumerate(columns)]
    return keyed_arrays([("k", held, "by.0")], named)


def table_rows(table: pa.Table, keys: list[str], columns: list[str]) -> KeyedSource:
    """Rows of a table, which are decoded in their order."""
    return keyed_frame(
        frame_of(table),
        [Wanted(name, name, "by") for name in keys],
        [Wanted(name, name, "aggregations") for name in columns],
        refuse_nulls=False,
    )


def same(made: GroupTable, wanted: GroupTable) -> None:
    assert [array.to_pylist() for array in made.keys] == [array.to_pylist() for array in wanted.keys]
    assert [array.type for array in made.keys] == [array.type for array in wanted.keys]
    assert (made.key_names, made.sizes.tolist(), made.dropped) == (
        wanted.key_names,
        wanted.sizes.tolist(),
        wanted.dropped,
    )
    for mine, theirs in zip(made.columns, wanted.columns, strict=True):
        assert (mine.name, mine.op, mine.dtype) == (theirs.name, theirs.op, theirs.dtype)
        assert mine.counts.tolist() == theirs.counts.tolist(), mine.op
        assert list(map(repr, mine.listed())) == list(map(repr, theirs.listed())), mine.op
        for states, others in zip(mine.states, theirs.states, strict=True):
            assert [states[at] for at in range(len(states))] == [others[at] for at in range(len(others))], mine.op
    assert made.described == wanted.described


def mixed(seed: int, dtype: str = "float64", rows: int = ROWS) -> Any:
    array = adversarial("any finite", DTYPES[dtype], rows, seed)
    array[::13] = np.nan
    array[::31] = np.inf
    return array


@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "int64", "bool"])
def test_rows_by_position_have_the_table_of_one_device(dtype: str) -> None:
    random = np.random.default_rng(1)
    array = mixed(1, dtype) if DTYPES[dtype].is_float else random.integers(0, 2, ROWS).astype(DTYPES[dtype].numpy)
    source = arrays(random.integers(-3, 40, ROWS).astype(np.int32), array)
    for devices, sort in ((2, True), (3, False)):
        plan = plan_of(nan_policy=NanPolicy.OMIT, sort=sort, min_count=2)
        members = [Device() for _ in range(devices)]
        same(group_shares(members, source, plan), CpuBackend(8 << 20).group_by(source, plan))
        taken = Counter(rows for member in members for rows in member.rows)
        assert sum(taken.elements()) == ROWS
        assert max(taken) - min(taken) <= 1, "shares are equal"


@pytest.mark.parametrize("states", [False, True])
def test_rows_of_tables_have_the_table_of_one_device(states: bool) -> None:
    random = np.random.default_rng(2)
    words = [None if number == 7 else f"w{number}" for number in random.integers(0, 9, ROWS).tolist()]
    table = pa.table(
        {
            "word": pa.array(words),
            "number": pa.array(random.integers(0, 4, ROWS), mask=random.random(ROWS) < 0.1),
            "category": pa.array([f"c{number % 3}" for number in range(ROWS)]).dictionary_encode(),
            "x": pa.array(mixed(2), mask=random.random(ROWS) < 0.2),
            "y": pa.array(random.integers(-(1 << 62), 1 << 62, ROWS)),
        }
    )
    ops = ("sum", "var", "norm2") if states else ASKED
    for keys in (["word"], ["word", "number"], ["category", "number"], ["number"]):
        source = in_parts(table_rows(table, keys, ["x", "y"]), 50)
        for sort, keep_nulls in ((True, True), (False, True), (False, False)):
            plan = plan_of(2, ops, sort=sort, keep_nulls=keep_nulls, states=states)
            wanted = CpuBackend(8 << 20).group_by(source, plan)
            same(group_shares([Device(), Device()], source, plan), wanted)


def test_rows_in_order_are_dealt_share_by_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "PART_ROWS", 10)
    table = pa.table({"k": np.arange(ROWS) % 5, "x": np.arange(ROWS) * 0.1})
    plan = plan_of(ops=("sum", "argmax"))
    wanted = CpuBackend(8 << 20).group_by(table_rows(table, ["k"], ["x"]), plan)
    for likely, most in ((ROWS, ROWS), (0, 100), (2, ROWS), (10 * ROWS, ROWS)):
        monkeypatch.setattr(shares, "MOST_OF_SHARE", most)
        source = replace(in_parts(table_rows(table, ["k"], ["x"]), 7), likely=likely)
        members = [Device() for _ in range(3)]
        same(group_shares(members, source, plan), wanted)
        taken = [rows for member in members for rows in member.rows]
        assert sum(taken) == ROWS
        assert len(taken) == {ROWS: 3, 0: 7, 2: 50, 10 * ROWS: 1}[likely], taken


def test_strings_by_position_are_shared_in_whole_parts() -> None:
    random = np.random.default_rng(3)
    words = pa.array([f"w{number}" for number in random.integers(0, 9, ROWS).tolist()])
    source = in_parts(arrays(words, mixed(3)), 90)
    plan = plan_of(sort=False)
    members = [Device(), Device(), Device()]
    same(group_shares(members, source, plan), CpuBackend(8 << 20).group_by(source, plan))
    assert sorted(rows for member in members for rows in member.rows) == [180, 250, 270]


def test_there_may_be_fewer_rows_than_devices() -> None:
    plan = plan_of()
    for rows in (0, 1, 2):
        keys, values = np.arange(rows, dtype=np.int16), np.ones(rows)
        for source in (arrays(keys, values), table_rows(pa.table({"k": keys, "x": values}), ["k"], ["x"])):
            made = group_shares([Device() for _ in range(4)], source, plan)
            same(made, CpuBackend(8 << 20).group_by(source, plan))
            assert made.rows == rows


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_any_shares_have_the_sums_of_one_device(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 60))
    keys = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=rows, max_size=rows)), np.int8)
    floats = st.floats(width=32) | st.sampled_from([-0.0, 0.0])
    values = np.array(data.draw(st.lists(floats, min_size=rows, max_size=rows)), np.float32)
    plan = plan_of(ops=("sum", "std", "min", "argmin"), sort=data.draw(st.booleans()))
    source = in_parts(arrays(keys, values), data.draw(st.integers(1, rows)))
    source = replace(source, decodes=data.draw(st.booleans()), likely=data.draw(st.integers(0, 2 * rows)))
    devices = [Device() for _ in range(data.draw(st.integers(1, 4)))]
    same(group_shares(devices, source, plan), CpuBackend(8 << 20).group_by(source, plan))


def test_generated_rows_stay_generated() -> None:
    keys, elements = (GeneratedSource("uniform", 1000, 3, DTYPES[name]) for name in ("int8", "float32"))
    source = keyed_arrays([("k", keys, "by.0")], [("x", elements, "aggregations.0")])
    listed = shares_of(source, 3)
    taken = [share for _ in range(3) if (share := listed.take()) is not None]
    assert listed.take() is None
    wholes = [whole for share in taken if (whole := share.source.whole) is not None]
    assert [(whole.first, whole.key.count) for whole in wholes] == [(0, 333), (333, 333), (666, 334)]
    assert all(generator_of(source) is not None for whole in wholes for source in (whole.key, *whole.columns))
    same(group_shares([Device(), Device()], source, plan_of()), CpuBackend(8 << 20).group_by(source, plan_of()))


@pytest.mark.parametrize(("least", "rows_of_shares"), [(1, [334, 333, 333]), (400, [500, 500]), (501, [1000])])
def test_generated_rows_are_cut_in_no_more_shares_than_have_enough_of_them(
    least: int, rows_of_shares: list[int]
) -> None:
    keys, elements = (GeneratedSource("uniform", 1000, 3, DTYPES[name]) for name in ("int8", "float32"))
    source = keyed_arrays([("k", keys, "by.0")], [("x", elements, "aggregations.0")])
    devices = [Device(), Device(), Device()]
    same(group_shares(devices, source, plan_of(), None, least), CpuBackend(8 << 20).group_by(source, plan_of()))
    # A device that is ready early may take two shares, so the shares are compared and not their owners.
    assert sorted((rows for device in devices for rows in device.rows), reverse=True) == rows_of_shares


def test_groups_are_counted_over_all_shares() -> None:
    source = arrays(np.arange(100, dtype=np.int64), np.ones(100))
    group_shares([Device(), Device()], source, plan_of(max_groups=100))
    with pytest.raises(InvalidInput, match="more than 99 groups: 100 were reached") as refused:
        group_shares([Device(), Device()], source, plan_of(max_groups=99))
    assert refused.value.field == "max_groups"


def test_an_error_of_a_share_ends_all_and_none_waits_for_ever() -> None:
    table = pa.table({"k": np.arange(ROWS) % 3, "x": np.where(np.arange(ROWS) == 20, np.nan, 1.0)})
    refusing = plan_of(nan_policy=NanPolicy.RAISE)
    by_position = arrays(table["k"].to_numpy(), table["x"].to_numpy())
    for source in (in_parts(table_rows(table, ["k"], ["x"]), 5), in_parts(by_position, 5), by_position):
        with pytest.raises(InvalidInput, match="row 20 of") as refused:
            group_shares([Device() for _ in range(4)], source, refusing)
        assert refused.value.field == "nan_policy"


class Broken(Device):
    def aggregate(self, query: Query[Answer], progress: Any = None) -> Answer:
        raise InvalidInput("reads nothing", "backend")


def test_a_share_that_nobody_read_holds_no_other_back() -> None:
    source = table_rows(pa.table({"k": [1, 2], "x": [1.0, 2.0]}), ["k"], ["x"])
    with pytest.raises(InvalidInput, match="reads nothing"):
        group_shares([Broken(), Broken(), Broken()], source, plan_of())


def test_rows_that_cannot_be_read_end_all() -> None:
    def begin() -> Iterator[KeyedPart]:
        yield from in_parts(arrays(np.arange(6), np.ones(6)), 2).begin()
        raise OSError("the disk is gone")

    source = replace(arrays(np.arange(6), np.ones(6)), begin=begin, whole=None, decodes=True, likely=2)
    with pytest.raises(OSError, match="the disk is gone"):
        group_shares([Device(), Device()], source, plan_of())


def test_progress_grows_to_the_whole() -> None:
    reports, lock = list[tuple[int, int]](), Lock()

    def progress(*now: int) -> None:
        with lock:
            reports.append((now[0], now[1]))

    source = in_parts(arrays(np.arange(ROWS) % 7, np.ones(ROWS)), 20)
    group_shares([Device(), Device()], source, plan_of(), progress)
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert reports[-1] == (ROWS, ROWS)
