"""What the host makes of the words that a GPU leaves of integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.kernels.cuda.grouped.selecting import spreads_of_integers
from warpfold.kernels.ops import OPS


def _words(numbers: list[int], words: int) -> NDArray[np.uint64]:
    content = b"".join(number.to_bytes(8 * words, "little", signed=True) for number in numbers)
    return np.frombuffer(content, np.uint64).reshape(len(numbers), words)


def _root(square: Fraction) -> float:
    """The float64 nearest to the root: of the floats beside a guess, the one whose borders enclose it."""
    guess = math.sqrt(square)
    for value in (guess, math.nextafter(guess, 0.0), math.nextafter(guess, math.inf)):
        below, above = ((Fraction(value) + Fraction(math.nextafter(value, side))) / 2 for side in (-math.inf, math.inf))
        if max(below, Fraction()) ** 2 <= square <= above**2:
            return value
    raise AssertionError(square)


_GROUPS = st.lists(
    st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5),
        st.lists(st.sampled_from([0, 1, -1, 2**31, 2**63 - 1, -(2**63)]), max_size=6),
        st.integers(2**62, 2**62 + 9).map(lambda first: [first, first + 1, first]),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("ddof", [0, 1, 3])
@given(groups=_GROUPS)
@settings(max_examples=100, deadline=None)
def test_variances_of_integers_are_the_true_ones_rounded_once(groups: list[list[int]], ddof: int) -> None:
    words = [
        _words([sum(group) for group in groups], 2),
        _words([sum(number * number for number in group) for group in groups], 3),
    ]
    counts = np.array([len(group) for group in groups])
    exact = [
        (sum(Fraction(number) ** 2 for number in group) - Fraction(sum(group)) ** 2 / len(group)) / (len(group) - ddof)
        if len(group) > ddof
        else None  # any value: `kernels.ops.empties` replaces it
        for group in groups
    ]
    variances, deviations = (spreads_of_integers(OPS[op], words, counts, ddof) for op in ("var", "std"))
    for variance, deviation, true in zip(variances, deviations, exact, strict=True):
        if true is not None:
            assert (variance, deviation) == (true.numerator / true.denominator, _root(true))
