"""Spreads and norms of windows have the bits of the definition, whether pairs make them certain or exact sums do."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cpu.rolling.squares import MovingSquares
from warpfold.kernels.cpu.windows import rolling_squares
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact.rounding import round_root
from warpfold.kernels.ops import OPS

COUNT = 9000
Floats = NDArray[np.float64]


def prices(chance: np.random.Generator) -> Floats:
    return np.asarray(np.cumsum(chance.normal(size=COUNT) * 0.01) + 1000.0, np.float64)


def spikes(chance: np.random.Generator) -> Floats:
    """Numbers between which some are so large that their squares hide all others."""
    elements = chance.normal(size=COUNT)
    elements[:: COUNT // 50] *= 2.0 ** chance.integers(-100, 100, elements[:: COUNT // 50].size)
    return elements


def half_way(chance: np.random.Generator) -> Floats:
    """Variances of neighbours that lie half-way between two floats."""
    signs = np.where(np.arange(COUNT) % 2, 1.0, -1.0)
    return np.asarray(signs * np.sqrt(2.0) * (1 + np.arange(COUNT) // 2 * 2.0**-30), np.float64)


DATA: Mapping[str, Callable[[np.random.Generator], Floats]] = MappingProxyType(
    {
        "normal": lambda chance: chance.normal(size=COUNT),
        "prices": prices,
        "cents": lambda chance: np.round(prices(chance), 2),
        "runs of equal numbers": lambda chance: np.repeat(chance.integers(-2, 3, COUNT // 30), 30).astype(np.float64),
        "all exponents of float32": lambda chance: np.exp(30 * chance.normal(size=COUNT)),
        "all exponents": lambda chance: np.ldexp(chance.normal(size=COUNT), chance.integers(-500, 500, COUNT)),
        "spikes": spikes,
        "half-way": half_way,
        "far from 0": lambda chance: np.asarray(2.0**60 + chance.integers(0, 1 << 12, COUNT) * 512.0, np.float64),
    }
)

DEFINED: Mapping[str, Callable[[Fraction, Fraction, int], tuple[Fraction, int]]] = MappingProxyType(
    {
        "sum_squares": lambda total, squares, n: (squares, 1),
        "norm2": lambda total, squares, n: (squares, 2),
        "rms": lambda total, squares, n: (squares / n, 2),
        "var": lambda total, squares, n: ((squares - total**2 / n) / (n - 1), 1),
        "std": lambda total, squares, n: ((squares - total**2 / n) / (n - 1), 2),
        "sem": lambda total, squares, n: ((squares - total**2 / n) / (n - 1) / n, 2),
    }
)


def moving(elements: Floats, op: str, width: int) -> Any:
    made = MovingSquares(elements, DTYPES["float64"], width, OPS[op], 1, omits=False)
    ends = np.arange(1, elements.size + 1)
    begins = np.maximum(ends - width, 0)
    return made.values(begins, ends, ends - begins, np.empty(elements.size))


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("op", "width"), [("std", 7), ("var", 300), ("sem", 2), ("rms", 40), ("norm2", 1000)])
def test_values_have_the_bits_of_the_definition(data: str, op: str, width: int) -> None:
    chance = np.random.default_rng(len(data))
    elements = DATA[data](chance)[: COUNT if OPS[op].finish.value != "of totals" else 600]
    got = moving(elements, op, width)
    for at in chance.integers(1, elements.size, 25).tolist():
        window = [Fraction(x) for x in elements[max(0, at + 1 - width) : at + 1].tolist()]
        value, degree = DEFINED[op](sum(window, Fraction(0)), sum((x * x for x in window), Fraction(0)), len(window))
        assert got[at] == round_root(value.numerator, value.denominator, 0, degree, DTYPES["float64"]), at


@pytest.mark.parametrize("op", ["var", "std", "sem", "rms", "norm2", "sum_squares"])
@pytest.mark.parametrize("data", ["normal", "prices", "cents", "runs of equal numbers", "spikes"])
def test_most_values_are_certain(data: str, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each would be made of exact sums, which take several times as long."""
    uncertain = []
    slide = rolling_squares.slide_pairs

    def watched(*arguments: Any) -> Any:
        run = slide(*arguments)
        uncertain.append(int(arguments[-1].sum()))
        return run

    monkeypatch.setattr(rolling_squares, "slide_pairs", watched)
    moving(DATA[data](np.random.default_rng(1)), op, 50)
    assert len(uncertain) == -(-COUNT // 4096)
    assert sum(uncertain) <= 2
