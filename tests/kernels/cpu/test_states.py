"""Columns of exact states, written and merged by compiled code, against the states of `kernels.exact`."""

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpfold.kernels.cpu.accumulator import units_of
from warpfold.kernels.cpu.states import MergedStates, encoded
from warpfold.kernels.exact import ORIGIN, ExactState, Flags, StateError
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import Terms

EDGES = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1.5,
    -1.0,
    2.0**-32,
    1e300,
    -1e300,
    1.7976931348623157e308,
    np.inf,
    -np.inf,
    np.nan,
]
elements = st.lists(st.one_of(st.sampled_from(EDGES), st.floats(allow_nan=False)), max_size=5)
kinds = st.sampled_from([Terms.VALUES, Terms.PRODUCTS])


def column(states: list[ExactState]) -> StateColumn:
    parts = [state.to_bytes() for state in states]
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return StateColumn(np.frombuffer(b"".join(parts), np.uint8), offsets)


@settings(max_examples=60, deadline=None)
@given(kinds, st.lists(st.lists(st.tuples(st.integers(0, 6), elements), max_size=6), min_size=1, max_size=6))
def test_merged_columns_have_the_bytes_of_merged_states(
    terms: Terms, tables: list[list[tuple[int, list[float]]]]
) -> None:
    merged = MergedStates(terms)
    expected: list[ExactState] = []
    for table in tables:
        states = [ExactState.of(np.array(part, np.float64), terms) for _, part in table]
        for (group, _), state in zip(table, states, strict=True):
            expected += [ExactState.empty(terms)] * (group + 1 - len(expected))
            expected[group] = expected[group].merge(state)
        merged.add(column(states), np.array([group for group, _ in table], np.int64), len(expected))
    encodings = merged.encoded(len(expected))
    assert [encodings[group] for group in range(len(expected))] == [state.to_bytes() for state in expected]
    assert merged.counts(len(expected)).tolist() == [state.count for state in expected]


def test_groups_and_digits_may_grow_in_turns() -> None:
    merged = MergedStates(Terms.VALUES)
    values = [1.0, 2.0, 4.0, 2.0**-200, 2.0**200, 8.0, 2.0**-900]
    for group, value in enumerate(values):  # room for groups is doubled, so it is for more than there are
        merged.add(column([ExactState.of(np.array([value]))]), np.array([group]), group + 1)
        encodings = merged.encoded(group + 1)
        wanted = [ExactState.of(np.array([each])).to_bytes() for each in values[: group + 1]]
        assert [encodings[at] for at in range(group + 1)] == wanted


counted = st.tuples(st.integers(-1050, 1000), st.integers(-9, 9), st.integers(1, 1 << 40))
"""An exponent, a multiple of 2 to it, and of how many such terms a state is."""


@settings(max_examples=100, deadline=None)
@given(kinds, st.lists(st.tuples(st.integers(0, 5), st.booleans(), counted), min_size=1, max_size=12))
def test_groups_digits_and_counts_grow_in_any_turns_and_are_read_between(
    terms: Terms, steps: list[tuple[int, bool, tuple[int, int, int]]]
) -> None:
    merged = MergedStates(terms)
    expected = [ExactState.empty(terms)]
    for more, read, (exponent, factor, count) in steps:
        expected += [ExactState.empty(terms)] * more
        flags = Flags.NOT_NEGATIVE_ZERO | (Flags.NAN if factor == 9 else Flags.NONE)
        units = abs(factor) if terms is Terms.PRODUCTS else factor
        state = ExactState(terms, units * count << exponent - ORIGIN[terms], count, flags)
        for group in (len(expected) - 1, more % len(expected)):
            expected[group] = expected[group].merge(state)
            merged.add(column([state]), np.array([group]), len(expected))
        if read:
            assert merged.counts(len(expected)).tolist() == [each.count for each in expected]
            encodings = merged.encoded(len(expected))
            assert [encodings[at] for at in range(len(expected))] == [each.to_bytes() for each in expected]
    sums = merged.sums(len(expected))
    assert [sums.state(at, each.count) for at, each in enumerate(expected)] == expected


def test_digits_that_grow_by_little_are_moved_few_times() -> None:
    merged, moved = MergedStates(Terms.VALUES), 0
    for exponent in range(0, 1000, 32):
        for value in (2.0**-exponent, 2.0**exponent):
            before = merged._digits.limbs
            merged.add(column([ExactState.of(np.array([value]))]), np.array([0]), 1)
            moved += merged._digits.limbs is not before
    assert moved <= 20


@settings(max_examples=30, deadline=None)
@given(
    kinds,
    st.lists(st.lists(st.integers(0, (1 << 32) - 1), min_size=3, max_size=3), min_size=1, max_size=5),
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.integers(0, 40),
)
def test_limbs_of_any_unit_are_written_as_the_state_of_their_sum(
    terms: Terms, rows: list[list[int]], last: int, shift: int
) -> None:
    limbs = np.array([[*row, last] for row in rows], np.int64)
    counts = np.full(len(rows), 1 << 40)
    flags = np.full(len(rows), int(Flags.NOT_NEGATIVE_ZERO))
    encodings = encoded(terms, ORIGIN[terms] + shift, limbs, flags, counts)
    for at, row in enumerate(limbs):
        state = ExactState(terms, units_of(row) << shift, 1 << 40, Flags.NOT_NEGATIVE_ZERO)
        assert encodings[at] == state.to_bytes()


def test_the_largest_sum_of_many_terms_is_read() -> None:
    largest = ExactState.of(np.full(3, np.finfo(np.float64).max))
    merged = MergedStates(Terms.VALUES)
    merged.add(column([largest, largest]), np.array([0, 0]), 1)
    assert merged.encoded(1)[0] == largest.merge(largest).to_bytes()


ONE = ExactState.of(np.array([1.0])).to_bytes()


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (b"XFXS" + ONE[4:], "magic"),
        (ONE[:4] + b"\x02" + ONE[5:], "version 2 is not known; this is version 1"),
        (ONE[:-4], "length"),
        (ONE[:6] + b"\x10" + ONE[7:], "flags"),
        (ONE[:6] + b"\x00" + ONE[7:], "flags"),
        (ONE[:8] + bytes(8) + ONE[16:], "limbs"),
        (ONE[:24] + bytes(4), "limbs"),
        (ONE[:20] + b"\x01" + ONE[21:], "reserved"),
        (b"", "magic"),
        (ExactState.of(np.array([1.0]), Terms.PRODUCTS).to_bytes(), "holds products, and the sum is of values"),
    ],
)
def test_a_damaged_state_is_refused_with_its_row(bad: bytes, word: str) -> None:
    offsets = np.cumsum([0, len(ONE), len(bad)]).astype(np.int64)
    states = StateColumn(np.frombuffer(ONE + bad, np.uint8), offsets)
    with pytest.raises(StateError, match="row 1") as caught:
        MergedStates(Terms.VALUES).add(states, np.array([0, 0]), 1)
    assert word in str(caught.value)


def test_bytes_behind_the_last_offset_do_not_matter_and_no_states_have_none() -> None:
    whole = column([ExactState.of(np.array([1.5])), ExactState.of(np.array([2.0]))])
    offsets = pyarrow.py_buffer(whole.offsets.tobytes() + b"odd")
    kind, data = pyarrow.large_binary(), pyarrow.py_buffer(whole.data)
    read = StateColumn.of_arrow(pyarrow.Array.from_buffers(kind, 2, [None, offsets, data]))
    assert [read[at] for at in range(2)] == [whole[at] for at in range(2)]
    empty = pyarrow.Array.from_buffers(kind, 0, [None, pyarrow.py_buffer(b""), data])
    assert len(StateColumn.of_arrow(empty)) == 0


def test_a_column_is_reordered_and_joined_as_arrow_has_it() -> None:
    states = [ExactState.of(np.arange(count, dtype=np.float64) * 1e100) for count in range(5)]
    whole = column(states)
    turned = StateColumn.of_arrow(StateColumn.beside([whole, whole]).array().slice(2, 6)).taken(np.array([5, 0, 3]))
    assert [turned[at] for at in range(3)] == [states[at].to_bytes() for at in (2, 2, 0)]
    assert turned.array().to_pylist() == [states[at].to_bytes() for at in (2, 2, 0)]
