"""Partial columns that are merged in any order, while rows come and dtypes change, are those of all elements."""

from collections.abc import Sequence
from math import copysign, isnan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.kernels.cpu.partial_columns import MergedColumn, PartialColumn
from warpfold.kernels.exact import ExactState
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import OPS
from warpfold.kernels.state_tables import terms_of

FLOATS = st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.0, 1e300, float("nan"), float("inf")]), max_size=3)
WHOLE = {"int8": (-128, 127), "int64": (-(1 << 63), (1 << 63) - 1), "uint64": (0, (1 << 64) - 1)}
Part = tuple[str, int, list[list[Any]]]
"""A dtype, how many rows come, and the elements of some of all rows, last row first."""


def parts_of(kinds: st.SearchStrategy[tuple[str, st.SearchStrategy[list[Any]]]]) -> st.SearchStrategy[list[Part]]:
    part = kinds.flatmap(
        lambda kind: st.tuples(st.just(kind[0]), st.integers(0, 40), st.lists(kind[1], min_size=1, max_size=5))
    )
    return st.lists(part, min_size=1, max_size=6)


of_floats = parts_of(st.just(("float64", FLOATS)))
of_integers = parts_of(
    st.sampled_from([(name, st.lists(st.integers(*bounds), max_size=3)) for name, bounds in WHOLE.items()])
)


def value_of(op: str, elements: Sequence[Any]) -> Any:
    """The value of an op, and where it is for argmin and argmax, by Python."""
    if op in ("count_nonzero", "any", "all"):
        nonzero = [element != 0 for element in elements]
        return sum(nonzero) if op == "count_nonzero" else any(nonzero) if op == "any" else all(nonzero)
    nan = next((at for at, element in enumerate(elements) if isinstance(element, float) and isnan(element)), None)
    places = op.startswith("arg")
    ordered = sorted(
        range(len(elements)),
        key=lambda at: (
            elements[at] if op.endswith("min") else -elements[at],
            0 if places else copysign(1, elements[at]) * (1 if op.endswith("min") else -1),
        ),
    )
    at = ordered[0] if nan is None else nan
    return at if places else elements[at]


def check(op: str, parts: Sequence[Part]) -> None:
    merged, rows, before = MergedColumn(OPS[op]), 1, 0
    held: list[list[Any]] = [[]]
    places: list[list[int]] = [[]]
    for dtype, more, lists in parts:
        rows += more
        held += [[] for _ in range(more)]
        places += [[] for _ in range(more)]
        ids = np.arange(rows)[::-1][: len(lists)]
        values, elements = [], []
        for row, some in zip(ids.tolist(), lists, strict=False):
            first = value_of(op, some) if some else 0
            values.append(before + first if op.startswith("arg") else first)
            elements.append(some[first] if some and op.startswith("arg") else 0)
            held[row] += some
            places[row] += range(before, before + len(some))
            before += len(some)
        counts = np.array([len(some) for some in lists[: ids.size]])
        kind = "int64" if op in ("argmin", "argmax", "count_nonzero") else "bool" if op in ("any", "all") else dtype
        beside = np.array(elements, dtype) if op.startswith("arg") else None
        merged.add(PartialColumn(counts, values=np.array(values, kind), elements=beside), ids, rows)
        whole = merged.partial(rows)
        assert whole.counts.tolist() == [len(some) for some in held]
        assert whole.values is not None
        for row, value in enumerate(whole.values.tolist()):
            if held[row]:
                wanted = value_of(op, held[row])
                wanted = places[row][wanted] if op.startswith("arg") else wanted
                assert same(value, wanted), (op, row, value, wanted)


def same(value: Any, wanted: Any) -> bool:
    return bool(value.hex() == wanted.hex() if isinstance(wanted, float) else value == wanted)


@pytest.mark.parametrize("op", ["min", "max", "argmin", "argmax", "count_nonzero", "any", "all"])
@settings(max_examples=25, deadline=None)
@given(parts=of_floats)
def test_rows_of_floats_may_come_with_any_part(op: str, parts: list[Part]) -> None:
    check(op, parts)


@pytest.mark.parametrize("op", ["min", "max", "argmin", "count_nonzero"])
@settings(max_examples=25, deadline=None)
@given(parts=of_integers)
def test_rows_of_integers_may_come_with_any_part_and_any_dtype(op: str, parts: list[Part]) -> None:
    check(op, parts)


@pytest.mark.parametrize("op", ["sum", "var"])
@settings(max_examples=25, deadline=None)
@given(parts=of_floats)
def test_rows_of_states_may_come_with_any_part(op: str, parts: list[Part]) -> None:
    merged, kinds = MergedColumn(OPS[op]), terms_of(OPS[op])
    held: list[list[float]] = [[]]
    for _, more, lists in parts:
        held += [[] for _ in range(more)]
        ids = np.arange(len(held))[::-1][: len(lists)]
        some = lists[: ids.size]
        columns = [StateColumn.of_bytes([state(each, terms) for each in some]) for terms in kinds]
        for row, elements in zip(ids.tolist(), some, strict=True):
            held[row] += elements
        merged.add(PartialColumn(np.array([len(each) for each in some]), tuple(columns)), ids, len(held))
        whole = merged.partial(len(held))
        assert whole.counts.tolist() == [len(each) for each in held]
        for terms, column in zip(kinds, whole.states, strict=True):
            assert [column[row] for row in range(len(held))] == [state(each, terms) for each in held]


def state(elements: Sequence[float], terms: Any) -> bytes:
    array: NDArray[np.float64] = np.array(elements, np.float64)
    return ExactState.of(array, terms).to_bytes()
