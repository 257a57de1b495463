"""Sums by few groups, gathered apart: the same integers as Python's; and what is compiled before a reduction."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.kernels.aggregates.by_name import exact_sum
from warpfold.kernels.cpu.keyed import reducing
from warpfold.kernels.cpu.keyed.column import SummedKeys
from warpfold.kernels.cpu.keyed.sums import KeyedFloatSums, LevelOrigin
from warpfold.kernels.cpu.windows import keyed
from warpfold.kernels.cpu.windows.levels import anchor_at
from warpfold.kernels.cpu.windows.vectors import COPIES, WIDE
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.ops import OPS, Terms
from warpfold.kernels.parts.keyed import Aggregation, Cells, GroupPlan, KeyedPart, KeyedRows, KeyedSource

Floats = NDArray[Any]
LOWEST = -90
LONG = 3 * keyed._BLOCK + 5


def elements(kind: str, dtype: str, levels: int) -> Floats:
    """Multiples of 2**LOWEST below 2**(LOWEST + 41 · levels), of which some are as large as that allows."""
    chance = np.random.default_rng(levels)
    top = LOWEST + keyed.PLACES * levels
    precision = np.finfo(dtype).nmant + 1
    largest = np.ldexp(1.0 - 2.0**-precision, top)
    if kind == "largest":
        return np.full(LONG, largest, dtype)
    if kind == "least":
        return np.full(LONG, -np.ldexp(1.0, LOWEST), dtype)
    exponents = chance.integers(LOWEST + precision, top, LONG)
    significands = chance.integers(1 << (precision - 1), 1 << precision, LONG) * chance.choice([-1, 1], LONG)
    made: Floats = np.ldexp(significands.astype(np.float64), exponents - precision).astype(dtype)
    made[:: LONG // 7] = -largest
    return made


def added(array: Floats, ids: NDArray[np.int32], levels: int, groups: int, weight: int) -> NDArray[np.int64]:
    """The state of all groups and the table, which must be empty again."""
    state = np.zeros((groups, levels + 2), np.int64)
    table = np.zeros((groups, COPIES, levels), np.int64)
    anchors = np.array([anchor_at(LOWEST + keyed.PLACES * level) for level in range(levels)])
    array.flags.writeable = False
    words = array.view(f"int{8 * array.itemsize}")
    rest = keyed.add_two if levels == 2 else keyed.add_four
    done = keyed.add_few(array, words, (0, 0, True), ids, state, keyed.lowered(anchors), weight, table)
    assert len(array) - done < WIDE
    rest(array[done:], ids[done:], state, anchors, weight)
    assert not table.any()
    return state


@pytest.mark.parametrize("levels", [2, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["random", "largest", "least"])
def test_few_groups_are_added_exactly(kind: str, dtype: str, levels: int) -> None:
    array = elements(kind, dtype, levels)
    for groups, weight in ((1, 1), (2, 1), (300, 1), (3, 0)):
        ids = np.random.default_rng(groups).integers(0, groups, LONG).astype(np.int32)
        state = added(array.copy(), ids, levels, groups, weight)
        units = [int(x) for x in np.ldexp(array.astype(np.float64), -LOWEST).tolist()]
        wanted = [0] * groups
        for group, unit in zip(ids.tolist(), units, strict=True):
            wanted[group] += unit
        sums = [sum(digit << keyed.PLACES * k for k, digit in enumerate(row[:-1])) for row in state.tolist()]
        assert sums == wanted
        assert state[:, -1].tolist() == (weight * np.bincount(ids, minlength=groups)).tolist()
        assert (np.abs(state[:, :levels]) < 1 << 62).all()


def test_arrays_that_are_shorter_than_a_turn_of_copies_are_left() -> None:
    array, ids = np.ones(3, np.float64), np.zeros(3, np.int32)
    state = added(array, ids, 2, 1, 1)
    assert state[0, -1] == 3


def test_what_prepares_a_reduction_calls_every_way_of_adding(monkeypatch: pytest.MonkeyPatch) -> None:
    called: set[tuple[str, int]] = set()

    def recorded(name: str, add: Any) -> Any:
        def run(*arguments: Any) -> Any:
            called.add((name, len(arguments[5 if name == "add_few" else 3])))  # the anchors
            return add(*arguments)

        return run

    for name in ("add_two", "add_four", "add_few"):
        monkeypatch.setattr(keyed, name, recorded(name, getattr(keyed, name)))
    key, cells = pyarrow.array([1, 2]), Cells(np.ones(2))
    parts = [KeyedPart(0, 2, lambda: KeyedRows(0, (key,), (cells,)))]
    source = KeyedSource(("k",), (key.type,), ("v",), (DTYPES["float64"],), lambda: iter(parts), 2)
    reducing.compile_for(source, GroupPlan((Aggregation(OPS["sum"], 0, "sum"),)))
    assert called == {("add_two", 2), ("add_four", 4), ("add_few", 2), ("add_few", 4)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spread", [0, 6])
@pytest.mark.parametrize("strange", [[], [-0.0], [np.nan, 1.0, -np.inf], [2.0**-140, -(2.0**120)], [-0.0] * 8000])
def test_elements_that_the_levels_do_not_hold_may_be_in_any_block(
    dtype: str, spread: int, strange: list[float]
) -> None:
    chance = np.random.default_rng(7)
    first, count = 400, 400 + LONG
    array = (chance.standard_normal(count) * np.exp(spread * chance.standard_normal(count))).astype(dtype)
    ids = chance.integers(1, 12, count).astype(np.int32)
    at = first + 2 * keyed._BLOCK + 5  # in the third block of the second part
    some = slice(at, at + len(strange))
    array[some] = strange
    ids[some] = np.arange(len(strange)) % 2 + 12  # groups 12 and 13 have nothing else
    sums = KeyedFloatSums(DTYPES[dtype], Terms.VALUES, LevelOrigin(), magnitudes=False)
    for part in (slice(0, first), slice(first, count)):
        sums.add(part.start, array[part], ids[part], 13)
    assert sums.counts(13).tolist() == np.bincount(ids, minlength=14)[1:].tolist()
    for group in range(1, 14):
        elements = array[ids == group]
        if not elements.size:
            continue
        state, finite = (
            sums.sums(slice(group - 1, group)).state(0, elements.size),
            elements[np.isfinite(elements)].tolist(),
        )
        assert state.units * Fraction(2) ** ORIGIN[Terms.VALUES] == sum(map(Fraction, finite), Fraction(0))
        assert bool(state.flags & Flags.NAN) == bool(np.isnan(elements).any())
        assert bool(state.flags & Flags.NEG_INF) == bool(np.isneginf(elements).any())
        negative_zeros = np.signbit(elements) & (elements == 0)
        assert bool(state.flags & Flags.NOT_NEGATIVE_ZERO) == (not negative_zeros.all())


steps = st.tuples(
    st.integers(0, 300),  # new groups
    st.sampled_from([0, 1, 2]),  # the fold that adds
    st.lists(
        st.one_of(
            st.sampled_from([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, -1e308]),
            st.floats(-4, 4, allow_nan=False),
            st.tuples(st.integers(-1000, 1000), st.sampled_from([-3.0, 1.0])).map(
                lambda pair: pair[1] * 2.0 ** pair[0]
            ),
        ),
        max_size=6,
    ),
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(steps, min_size=1, max_size=8),
    st.sampled_from([Terms.VALUES, Terms.PRODUCTS]),
    st.sampled_from(["float64", "float32"]),
)
def test_groups_levels_limbs_and_flags_grow_in_any_turns(
    steps: list[tuple[int, int, list[float]]], terms: Terms, name: str
) -> None:
    dtype, origin = DTYPES[name], LevelOrigin()
    folds = [KeyedFloatSums(dtype, terms, origin, magnitudes=False) for _ in range(3)]
    grow(folds, steps, terms, dtype.numpy)


whole = st.tuples(
    st.integers(0, 300), st.sampled_from([0, 1, 2]), st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=6)
)


@settings(max_examples=40, deadline=None)
@given(st.lists(whole, min_size=1, max_size=8), st.sampled_from([Terms.VALUES, Terms.PRODUCTS]))
def test_groups_and_digits_of_integers_grow_in_any_turns(steps: list[tuple[int, int, list[int]]], terms: Terms) -> None:
    folds = [SummedKeys(exact_sum([DTYPES["int64"]], terms, magnitudes=False)) for _ in range(3)]
    grow(folds, steps, terms, np.dtype(np.int64))


def grow(folds: Sequence[Any], steps: Sequence[tuple[int, int, Sequence[Any]]], terms: Terms, dtype: Any) -> None:
    """Add elements to three folds whose groups grow, read each fold in between, and merge all."""
    groups = [1] * len(folds)
    expected = [[ExactState.empty(terms)] for _ in folds]
    for more, which, elements in steps:
        fold, known = folds[which], expected[which]
        groups[which] += more
        known += [ExactState.empty(terms)] * more
        with np.errstate(over="ignore"):
            array = np.array(elements, dtype)
        ids = np.array([groups[which] - at % groups[which] for at in range(array.size)], np.int32)
        fold.add(0, array, ids, groups[which])
        for group in set(ids.tolist()):
            known[group - 1] = known[group - 1].add(array[ids == group])
        assert same_states(fold, known)
    for which in (1, 2):
        ids = np.concatenate([[0], groups[0] - np.arange(groups[which]) % groups[0]]).astype(np.int32)
        total = max(groups)
        ids = np.arange(groups[which] + 1, dtype=np.int32) if groups[which] > groups[0] else ids
        folds[0].merge(folds[which], ids, total)
        expected[0] += [ExactState.empty(terms)] * (total - len(expected[0]))
        for group, state in zip(ids[1:].tolist(), expected[which], strict=True):
            expected[0][group - 1] = expected[0][group - 1].merge(state)
        groups[0] = total
        assert same_states(folds[0], expected[0])


def same_states(fold: Any, expected: Sequence[ExactState]) -> bool:
    states = fold.states(len(expected))
    return [states[at] for at in range(len(expected))] == [state.to_bytes() for state in expected]
