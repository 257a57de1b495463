"""Partial results of sums that are merged in any order, while groups come, are those of all elements. The other ops are
in `tests/kernels/test_aggregates.py`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.kernels.exact import ExactState
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import OPS, terms_of
from warpfold.kernels.parts.keyed import Aggregation
from warpfold.kernels.parts.merged import Merged
from warpfold.kernels.parts.partial import PartialColumn, PartialTable

FLOATS = st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.0, 1e300, float("nan"), float("inf")]), max_size=3)
Part = tuple[str, int, list[list[Any]]]
"""A dtype, how many rows come, and the elements of some of all rows, last row first."""


def parts_of(kinds: st.SearchStrategy[tuple[str, st.SearchStrategy[list[Any]]]]) -> st.SearchStrategy[list[Part]]:
    part = kinds.flatmap(
        lambda kind: st.tuples(st.just(kind[0]), st.integers(0, 40), st.lists(kind[1], min_size=1, max_size=5))
    )
    return st.lists(part, min_size=1, max_size=6)


of_floats = parts_of(st.just(("float64", FLOATS)))


@pytest.mark.parametrize("op", ["sum", "var"])
@settings(max_examples=25, deadline=None)
@given(parts=of_floats)
def test_groups_of_states_may_come_with_any_part(op: str, parts: list[Part]) -> None:
    merged, kinds = Merged([OPS[op]]), terms_of(OPS[op])
    held: list[list[float]] = [[]]
    for _, more, lists in parts:
        held += [[] for _ in range(more)]
        ids = np.arange(len(held))[::-1][: len(lists)]
        some = lists[: ids.size]
        columns = [StateColumn.of_bytes([state(each, terms) for each in some]) for terms in kinds]
        for row, elements in zip(ids.tolist(), some, strict=True):
            held[row] += elements
        merged.add(PartialTable(ids, (PartialColumn(("float64",), tuple(columns)),)))
        assert merged.count == len(held)
        (column,) = merged.columns([Aggregation(OPS[op], 0, op)], states=True)
        assert column.counts.tolist() == [len(each) for each in held]
        for terms, states in zip(kinds, column.states, strict=True):
            assert [states[row] for row in range(len(held))] == [state(each, terms) for each in held]


def state(elements: Sequence[float], terms: Any) -> bytes:
    array: NDArray[np.float64] = np.array(elements, np.float64)
    return ExactState.of(array, terms).to_bytes()
