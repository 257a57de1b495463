"""Columns whose groups are numbered come to the values that rationals have, and their states merge."""

import numpy as np
import pyarrow as pa
import pytest

from tests.support.hard_sums import COLUMNS, by_rows, present, random_columns, same, true_mean, true_sum
from warpfold.engines import numbered
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.keyed import Cells

GROUPS = [*COLUMNS.values(), *random_columns(3, 60)]
KEYS, ELEMENTS = by_rows(GROUPS)
NUMBERS = np.array(KEYS, np.int32)
CELLS = numbered.cells_of(pa.array(ELEMENTS, pa.float64()))


def test_groups_have_the_sums_and_means_of_rationals() -> None:
    sums = numbered.reduce_groups(CELLS, NUMBERS, len(GROUPS), "sum").listed()
    means = numbered.reduce_groups(CELLS, NUMBERS, len(GROUPS), "mean").listed()
    for column, value, mean in zip(GROUPS, sums, means, strict=True):
        assert same(value, true_sum(column)), column
        assert same(mean, true_mean(column)), column


def test_the_elements_together_have_their_own_sum() -> None:
    for column in COLUMNS.values():
        cells = numbered.cells_of(pa.array(column, pa.float64()))
        assert same(numbered.reduce_all(cells, "sum"), true_sum(column))
        assert same(numbered.reduce_all(cells, "mean"), true_mean(column))
        assert numbered.state_of(cells) == ExactState.of(np.array(present(column), np.float64))


def test_lists_are_groups_that_lie_one_behind_another() -> None:
    lists = pa.array(GROUPS, pa.list_(pa.float64())).slice(2)
    made = numbered.reduce_lists(numbered.cells_of(lists.values), lists.offsets.to_numpy(), "sum")
    assert all(same(value, true_sum(column)) for value, column in zip(made.listed(), GROUPS[2:], strict=True))


def test_states_of_parts_merge_to_the_value_of_the_whole() -> None:
    half = len(ELEMENTS) // 2
    parts = []
    for rows in (slice(0, half), slice(half, None)):
        missing = None if CELLS.missing is None else CELLS.missing[rows]
        part = Cells(CELLS.elements[rows], missing)
        parts.append(numbered.reduce_groups(part, NUMBERS[rows], len(GROUPS), "sum", states=True).states[0].array())
    numbers = np.tile(np.arange(len(GROUPS)), 2)
    merged = numbered.merge_groups(pa.concat_arrays(parts), numbers, len(GROUPS)).array()
    values, missing = numbered.values_of_states(merged)
    means, no_mean = numbered.values_of_states(merged, mean=True)
    assert not missing.any()
    for column, value, mean, none in zip(GROUPS, values, means, no_mean, strict=True):
        assert same(value, true_sum(column))
        assert same(None if none else mean, true_mean(column))
    whole = ExactState.of(np.array(present(ELEMENTS), np.float64))
    assert numbered.merge_all(merged) == whole


def test_rows_without_a_group_are_in_none() -> None:
    made = numbered.reduce_groups(Cells(np.ones(3)), np.array([0, -1, 0]), 2, "sum")
    assert made.values.tolist() == [2.0, 0.0]
    states = pa.array([numbered.state_of(Cells(np.ones(1))).to_bytes(), None], pa.binary())
    assert len(numbered.merge_groups(states, np.array([-1, 0]), 1)[0]) == 24
    assert numbered.values_of_states(states)[1].tolist() == [False, True]


def test_integers_are_added_up_exactly() -> None:
    cells = Cells(np.array([2**62, 2**62, 2**62, 1]))
    assert numbered.reduce_all(cells, "sum") == 3 * 2**62 + 1
    assert numbered.reduce_groups(cells, np.zeros(4, int), 1, "sum").listed() == [3 * 2**62 + 1]


def test_what_is_no_column_of_numbers_or_no_state_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="'names' holds string"):
        numbered.cells_of(pa.array(["a"]), "names")
    with pytest.raises(InvalidInput, match="known: sum, mean"):
        numbered.reduce_all(Cells(np.ones(1)), "prod")
    with pytest.raises(InvalidInput, match="row 0 does not hold an exact state: magic"):
        numbered.merge_all(pa.array([b"no state at all, but long enough"]))
    products = ExactState.of(np.ones(1), Terms.PRODUCTS).to_bytes()
    with pytest.raises(InvalidInput, match="row 1"):
        numbered.merge_all(pa.array([ExactState.of(np.ones(1)).to_bytes(), products]))
    newer = bytearray(products)
    newer[4] = 2
    with pytest.raises(InvalidInput, match="version 2 is not known"):
        numbered.merge_all(pa.array([bytes(newer)]))
