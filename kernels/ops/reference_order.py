"""Ops whose values follow from the order of the elements, by their definition: see `reference`."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from warpfold.kernels.dtypes import DTYPES, DType, Kind
from warpfold.kernels.ops import INTEGER, Extreme, Op, Value
from warpfold.kernels.ops.reference import Element, magnitude, nearest


def value(op: Op, dtype: DType, elements: Sequence[tuple[int, Element]]) -> Value:
    """The value of `op` of elements with their places, of which there is one at least."""
    if op.picks:
        return _picked(op, dtype, elements)
    if op.places:
        return _place(op, elements)
    present = [x for _, x in elements]
    if op.fold == "mode":
        return _mode(dtype, present)
    if op.fold == "span":
        return _span(op, dtype, present)
    if op.fold == "histogram":
        return _in_bins(op, present)[op.part or 0]
    return _quantile(op, dtype, present) if op.selects else _extreme(op, dtype, present)


def _place(op: Op, elements: Sequence[tuple[int, Element]]) -> int:
    for index, x in elements:
        if x.nan:
            return index
    ordered = [(index, _extended(x)) for index, x in elements]
    best = min if op.extreme is Extreme.LEAST else max
    target = best(value for _, value in ordered)
    return next(index for index, value in ordered if value == target)


def _picked(op: Op, dtype: DType, elements: Sequence[tuple[int, Element]]) -> Value:
    ordered = list(elements)
    if op.extreme is not None:
        sign = 1 if op.extreme is Extreme.LEAST else -1

        def key(pair: tuple[int, Element]) -> tuple[bool, tuple[int, Fraction], bool, int]:
            place, x = pair
            rank, number = _extended(x)
            zeros = not op.places and x.negative == (op.extreme is Extreme.MOST)  # −0 is less than 0, unless by place
            return not x.nan, (sign * rank, sign * number), not x.nan and zeros, place

        ordered.sort(key=key)
    elif op.parameters.n is not None and op.parameters.n < 0:
        ordered.reverse()
    place, x = ordered[op.rank]
    if op.places:
        return place
    return math.nan if x.nan else _plain(x, dtype)


def _mode(dtype: DType, present: Sequence[Element]) -> Value:
    if any(x.nan for x in present):
        return math.nan
    values = [_extended(x) for x in present]  # the value of a zero has no sign
    counts = Counter(values)
    best = min(counts, key=lambda value: (-counts[value], value))
    element = _plain(present[values.index(best)], dtype)
    return abs(element) if dtype.is_float and element == 0 else element


def _span(op: Op, dtype: DType, present: Sequence[Element]) -> Value:
    if any(x.nan for x in present):
        return math.nan
    low, high = (best(present, key=_extended) for best in (min, max))
    if low.infinite or high.infinite:
        return math.nan if low.infinite and high.infinite and low.negative == high.negative else math.inf
    distance = high.value - low.value
    return nearest(distance, dtype) if dtype.is_float else int(distance)


def _in_bins(op: Op, present: Sequence[Element]) -> list[int]:
    bins, limits = op.parameters.bins, op.parameters.range
    if isinstance(bins, int) and limits is not None:
        edges = np.linspace(*limits, bins + 1).tolist()
    else:
        edges = list(bins) if isinstance(bins, tuple) else [-math.inf, math.inf]
    ends = [(-1 if edge < 0 else 1, Fraction(0)) if math.isinf(edge) else (0, Fraction(edge)) for edge in edges]
    values = [_extended(x) for x in present if not x.nan]
    inner = [sum(low <= value < high for value in values) for low, high in pairwise(ends[:-1])]
    return [*inner, sum(ends[-2] <= value <= ends[-1] for value in values)]


def _extended(x: Element) -> tuple[int, Fraction]:
    """Sorts as the extended reals do."""
    return (-1 if x.negative else 1, Fraction(0)) if x.infinite else (0, x.value)


def _extreme(op: Op, dtype: DType, present: Sequence[Element]) -> Value:
    if any(x.nan for x in present):
        return math.nan
    candidates = [magnitude(x) for x in present] if op.magnitudes else list(present)
    best = min if op.extreme is Extreme.LEAST else max
    # −0 sorts before +0, as in minimum and maximum of IEEE 754-2019.
    element = best(candidates, key=lambda x: (_extended(x), not x.negative))
    value = _plain(element, dtype)
    return int(value) if op.result_dtype(dtype) == INTEGER else value


def _plain(element: Element, dtype: DType) -> Value:
    """An element of `dtype` that is no NaN as a Python value."""
    if not dtype.is_float:
        whole = int(element.value)
        return bool(whole) if dtype.kind is Kind.BOOL else whole
    if element.infinite:
        return _infinity(element)
    return -0.0 if element.negative and element.value == 0 else float(element.value)


def _infinity(element: Element) -> float:
    return -math.inf if element.negative else math.inf


def _quantile(op: Op, dtype: DType, present: Sequence[Element]) -> Value:
    """(1 − γ) x_j + γ x_(j+1) of the sorted elements x₁ … x_n (Hyndman and Fan, 1996)."""
    (share,), method = op.parameters.each_q, str(op.parameters.method)
    q = Fraction(str(share))
    if any(x.nan for x in present):
        return math.nan
    n = len(present)
    if method in _OFFSETS:
        place = n * q + _OFFSETS[method](q)
        j, g = math.floor(place), place - math.floor(place)
        gamma = {
            "inverted_cdf": Fraction(g > 0),
            "averaged_inverted_cdf": Fraction(1) if g else Fraction(1, 2),
            "closest_observation": Fraction(not (g == 0 and j % 2 == 0)),
        }.get(method, g)
    else:
        place = (n - 1) * q + 1
        j, g = math.floor(place), place - math.floor(place)
        half = Fraction(1, 2)
        up = {"lower": Fraction(0), "higher": Fraction(1), "midpoint": half}
        gamma = up.get(method, Fraction(g > half or (g == half and j % 2 == 0))) if g else g
    ordered = sorted(present, key=lambda x: (_extended(x), not x.negative))
    below, above = (ordered[min(max(at, 1), n) - 1] for at in (j, j + 1))
    if method in ("inverted_cdf", "closest_observation", "lower", "higher", "nearest"):
        return _plain(above if gamma else below, dtype)
    return value_between(below, above, gamma, dtype)


def value_between(below: Element, above: Element, gamma: Fraction, dtype: DType) -> float:
    """(1 − γ) · below + γ · above rounded once, of elements of `dtype` of which none is NaN."""
    if gamma in (0, 1) or below == above:
        element = above if gamma == 1 else below
        return float(_plain(element, dtype)) if dtype.is_float else nearest(element.value, DTYPES["float64"])
    if below.infinite or above.infinite:
        return math.nan if below.infinite and above.infinite else _infinity(below if below.infinite else above)
    return nearest((1 - gamma) * below.value + gamma * above.value, dtype if dtype.is_float else DTYPES["float64"])


_OFFSETS: Mapping[str, Callable[[Fraction], Fraction]] = MappingProxyType(
    {
        "inverted_cdf": lambda q: Fraction(0),
        "averaged_inverted_cdf": lambda q: Fraction(0),
        "closest_observation": lambda q: Fraction(-1, 2),
        "interpolated_inverted_cdf": lambda q: Fraction(0),
        "hazen": lambda q: Fraction(1, 2),
        "weibull": lambda q: q,
        "linear": lambda q: 1 - q,
        "median_unbiased": lambda q: (q + 1) / 3,
        "normal_unbiased": lambda q: q / 4 + Fraction(3, 8),
    }
)
