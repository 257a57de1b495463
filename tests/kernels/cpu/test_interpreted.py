"""Small sources before anything is compiled: the values and states of the vectors, and of each value alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels.conformance import check_degrees_of_freedom, check_ops
from tests.support.kernels.patterns import array_of_bits, patterns
from warpfold.kernels.cpu import backend as of_cpu
from warpfold.kernels.cpu import interpreted
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cpu.keyed import reducing as keyed
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.ops import OPS, NanPolicy, Op, Terms
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan, KeyedSource
from warpfold.kernels.source import ArraySource

ADDING = [op for op in OPS.values() if op.adds and op.terms is not Terms.TOTALS]


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled, on a machine on which nothing is compiled so far."""
    made: list[str] = []
    monkeypatch.setattr(of_cpu, "is_marked", lambda what: what in made)
    monkeypatch.setattr(of_cpu, "mark_compiled", made.append)
    return made


@pytest.fixture
def backend(prepared: list[str]) -> CpuBackend:
    return CpuBackend(at_once=True)


@pytest.mark.parametrize("name", list(DTYPES))
def test_values_and_states_of_a_small_array_are_those_of_the_vectors(backend: CpuBackend, name: str) -> None:
    check_ops(backend, name)
    check_degrees_of_freedom(backend, name)


@pytest.mark.parametrize("op", ADDING, ids=lambda op: op.name)
def test_a_small_source_waits_for_no_compiler_and_a_larger_one_does(
    backend: CpuBackend, prepared: list[str], op: Op, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.array([0.1, 0.2, -0.3])
    other = ArraySource(array[::-1].copy()) if op.sources == 2 else None
    small = backend.reduce(ArraySource(array), op.name, other=other)
    grouped = backend.reduce_groups(ArraySource(array), (3, 1), AlongAxes((0,)), op.name, other=other)
    assert list(grouped.listed()) == [small.value]
    assert not prepared
    assert small.prepare_ms == 0
    monkeypatch.setattr(of_cpu, "SMALL", 2)
    compiled = backend.reduce(ArraySource(array), op.name, other=other)
    assert len(prepared) == 1
    assert (compiled.value, compiled.state) == (small.value, small.state)
    monkeypatch.undo()


def test_what_another_process_has_compiled_is_loaded(prepared: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_cpu, "SMALL", 0)
    CpuBackend(at_once=True).reduce(ArraySource(np.ones(1)), "sum")
    monkeypatch.setattr(of_cpu, "SMALL", interpreted.SMALL)
    later = CpuBackend(at_once=True)
    assert later.reduce(ArraySource(np.ones(1)), "sum").prepare_ms > 0
    assert len(prepared) == 2


def test_many_values_wait_for_compiled_loops(backend: CpuBackend, prepared: list[str]) -> None:
    rows = interpreted.MANY + 1
    backend.reduce_groups(ArraySource(np.ones(2 * rows)), (rows, 2), AlongAxes((1,)), "sum")
    assert len(prepared) == 1


def rows(count: int, dtype: str = "float64", key: str = "int64") -> KeyedSource:
    """Ones under two keys."""
    keys, ones = ArraySource(np.arange(count).astype(key) % 2), ArraySource(np.ones(count, dtype))
    return keyed_arrays([("k", keys, "by")], [("x", ones, "column")])


def test_a_small_table_waits_for_no_compiler_and_a_larger_one_does(
    backend: CpuBackend, prepared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = GroupPlan(tuple(Aggregation(OPS[name], 0, name) for name in ("sum", "var", "norm1")), states=True)
    small = backend.group_by(rows(4), plan)
    assert not prepared
    assert [column.listed() for column in small.columns] == [[2.0, 2.0], [0.0, 0.0], [2.0, 2.0]]
    monkeypatch.setattr(of_cpu, "SMALL", 3)
    larger = backend.group_by(rows(4), plan)
    assert len(prepared) == 4
    for first, second in zip(small.columns, larger.columns, strict=True):
        assert first.values.tobytes() == second.values.tobytes()
        assert [states.data.tobytes() for states in first.states] == [states.data.tobytes() for states in second.states]


def test_a_table_is_added_up_by_what_others_have_compiled(prepared: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    both = GroupPlan((Aggregation(OPS["sum"], 0, "a"), Aggregation(OPS["mean"], 0, "b")))
    sums = GroupPlan((Aggregation(OPS["sum"], 0, "c"),), sort=False)
    monkeypatch.setattr(of_cpu, "SMALL", 0)
    CpuBackend(at_once=True).group_by(rows(2), both)
    monkeypatch.setattr(of_cpu, "SMALL", interpreted.SMALL)
    for source, plan, is_compiled in (
        (rows(2, key="int64"), sums, True),
        (rows(2, key="int8"), sums, False),
        (rows(2, "float32"), sums, False),
        (rows(2), replace(sums, states=True), False),
    ):
        compiled: list[bool] = []
        monkeypatch.setattr(keyed, "group_by", partial(_noted, keyed.group_by, compiled))
        CpuBackend(at_once=True).group_by(source, plan)
        assert compiled[0] is is_compiled


def _noted(group_by: Any, noted: list[bool], *asked: Any, compiled: bool) -> Any:
    noted.append(compiled)
    return group_by(*asked, compiled=compiled)


@dataclass(frozen=True, slots=True)
class Asked:
    """A reduction of arrays of a dtype to many values, with the policy for NaN and delta degrees of freedom."""

    arrays: tuple[Any, ...]
    grouping: Grouping
    op: Op
    policy: NanPolicy
    ddof: int

    def other(self, arrays: Sequence[Any]) -> dict[str, Any]:
        return {"other": ArraySource(np.ascontiguousarray(arrays[1]))} if self.op.sources == 2 else {}


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    dtype = draw(st.sampled_from(list(DTYPES.values())))
    op = draw(st.sampled_from(ADDING))
    flat = [array_of_bits(draw(patterns(dtype, max_size=48)), dtype) for _ in range(op.sources)]
    first, second = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    rows = min(array.size for array in flat) // (first * second)
    arrays = [array[: first * rows * second].reshape(first, rows, second) for array in flat]
    if draw(st.booleans()):
        arrays = [np.asfortranarray(array) for array in arrays]
    grouping: Grouping = AlongAxes(draw(st.sampled_from([(0,), (1,), (2,), (0, 2), (0, 1, 2)])))
    if draw(st.booleans()):
        edges = draw(st.lists(st.integers(0, arrays[0].size), min_size=1, max_size=6))
        grouping = Segments(offsets=tuple(sorted(edges)))
    ddof = draw(st.integers(0, 2)) if op.ddof else 0
    return Asked(tuple(arrays), grouping, op, draw(st.sampled_from(list(NanPolicy))), ddof)


@given(asked=asked())
def test_many_values_are_each_what_they_are_alone(asked: Asked) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(of_cpu, "is_marked", lambda what: False)
        patched.setattr(of_cpu, "mark_compiled", lambda what: pytest.fail("something was compiled"))
        backend, x = CpuBackend(at_once=True), asked.arrays[0]
        options: dict[str, Any] = {"nan_policy": asked.policy, "ddof": asked.ddof}
        call = partial(backend.reduce_groups, ArraySource(x), x.shape, asked.grouping, asked.op.name, **options)
        if asked.policy is NanPolicy.RAISE and any(np.isnan(a.astype(np.float64)).any() for a in asked.arrays):
            with pytest.raises(InvalidInput, match="is NaN"):
                call(states=True, **asked.other(asked.arrays))
            return
        made = call(states=True, **asked.other(asked.arrays))
        members = [list(_members(array, asked.grouping)) for array in asked.arrays]
        assert len(members[0]) == len(made.values) == len(made.counts)
        for at, value in enumerate(made.listed()):
            own = [each[at] for each in members]
            source = ArraySource(np.ascontiguousarray(own[0]))
            try:
                alone = backend.reduce(source, asked.op.name, **options, **asked.other(own))
            except InvalidInput:  # the op has no value of so few elements
                assert value is None
                continue
            assert repr(value) == repr(alone.value)
            assert made.counts[at] == alone.count
            assert alone.state is None or made.states[0][at] == alone.state


def _members(array: Any, grouping: Grouping) -> Any:
    """The elements of each value in turn."""
    if isinstance(grouping, Segments):
        flat, bounds = array.reshape(-1), grouping.bounds(array.size)
        return (flat[start:stop] for start, stop in pairwise(bounds))
    reduced = grouping.reduced(array.ndim)
    moved = np.moveaxis(array, reduced, range(-len(reduced), 0))
    return moved.reshape(prod(grouping.result_shape(array.shape)), prod(array.shape[axis] for axis in reduced))
