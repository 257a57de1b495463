"""Values of several totals that are called certain have the bits of the definition, and nearly all are certain."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cpu.certain import ColumnStates, certain_values
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.exact import ExactState, Flags
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.exact.encoding import FACTORS
from warpfold.kernels.ops import OPS, Finish, Op, terms_of

MADE_OF_TOTALS = [name for name, op in OPS.items() if op.finish is Finish.OF_TOTALS]
GROUPS, SIZE = 40, 12
Make = Callable[[np.random.Generator], NDArray[np.float64]]

DATA: Mapping[str, Make] = MappingProxyType(
    {
        "normal": lambda chance: chance.normal(size=(GROUPS, SIZE)),
        "far from 0": lambda chance: chance.normal(size=(GROUPS, SIZE)) + 1e6,
        "small": lambda chance: chance.normal(size=(GROUPS, SIZE)) * 1e-60,
        "whole": lambda chance: chance.integers(-3, 4, (GROUPS, SIZE)).astype(np.float64),
        "equal": lambda chance: np.repeat(chance.normal(size=(GROUPS, 1)), SIZE, axis=1),
        "exponents": lambda chance: np.ldexp(
            chance.normal(size=(GROUPS, SIZE)), chance.integers(-80, 80, (GROUPS, SIZE))
        ),
    }
)


def states_of(op: Op, x: NDArray[np.float64], y: NDArray[np.float64]) -> list[list[ExactState]]:
    """The states of the totals of rows, by Python's integers."""
    units = [[[int(Fraction(v) * (1 << 1074)) for v in row.tolist()] for row in side] for side in (x, y)]
    made: list[list[ExactState]] = []
    for total, terms in zip(op.totals, terms_of(op), strict=True):
        sums = []
        for row, beside in zip(*units, strict=True):
            product = [1] * len(row)
            for letter in total.strip("|"):
                product = [p * q for p, q in zip(product, row if letter == "x" else beside, strict=True)]
            summed = sum(map(abs, product) if "|" in total else product)
            sums.append(ExactState(terms, summed, len(row), Flags.NOT_NEGATIVE_ZERO))
        made.append(sums)
    return made


def columns_of(states: list[list[ExactState]]) -> list[ColumnStates]:
    return [ColumnStates(StateColumn.of_bytes([state.to_bytes() for state in each])) for each in states]


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", MADE_OF_TOTALS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_certain_has_the_bits_of_the_definition(name: str, data: str, dtype: str) -> None:
    chance, op = np.random.default_rng(7), OPS[name]
    x, y = DATA[data](chance), DATA[data](chance)
    ddof = int(op.ddof)
    states = states_of(op, x, y)
    finish = ValueFinish(op, dtype, ddof)
    counts = np.full(GROUPS, SIZE)
    values, certain = certain_values(op, ddof, columns_of(states), counts, finish.form)
    for at in np.flatnonzero(certain).tolist():
        assert values[at].hex() == float(finish.value([each[at] for each in states])).hex(), at
    if data == "normal":
        assert certain.sum() >= GROUPS - 1
    if data == "equal" and name not in {"rms", "norm3", "norm4"}:
        assert not certain.any()


def test_a_special_total_and_a_count_of_none_are_left() -> None:
    op = OPS["rms"]
    (states,) = states_of(op, np.ones((GROUPS, SIZE)), np.ones((GROUPS, SIZE)))
    states[3] = ExactState(states[3].terms, states[3].units, SIZE, Flags.NOT_NEGATIVE_ZERO | Flags.POS_INF)
    states[4] = ExactState.empty(states[4].terms)
    counts = np.full(GROUPS, SIZE)
    counts[4] = 0
    values, certain = certain_values(op, 0, columns_of([states]), counts, ValueFinish(op, "float64", 0).form)
    assert np.flatnonzero(~certain).tolist() == [3, 4]
    assert (values[certain] == 1.0).all()


def test_states_of_products_are_made_when_they_are_asked_for() -> None:
    sums = [ExactState.of(np.array([1.5, 2.0])), ExactState.empty(FACTORS_TERMS[1])]
    column = StateColumn.of_bytes([state.to_bytes() for state in sums])
    terms = FACTORS_TERMS[3]
    made = ColumnStates(column, terms, [1, 0], 2148)
    assert [state.count for state in made] == made.counts == [1, 0]
    assert made[0].units == sums[0].units << 2148
    assert made[0].terms is terms
    assert made[1] == ExactState.empty(terms)
    assert ColumnStates(column).counts == [2, 0]


FACTORS_TERMS: Mapping[int, Any] = MappingProxyType({many: terms for terms, many in FACTORS.items()})
