"""Ops of two sources, weights and new rows have the values of exact fractions, rounded once, on every layout."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.kernels.conformance import same
from tests.support.kernels.patterns import any_bits, array_of_bits
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.ops import OPS, Finish, NanPolicy, Op, Terms, reference
from warpfold.kernels.ops.finishes import Root
from warpfold.kernels.ops.weights import WITH_WEIGHTS, Weighting
from warpfold.kernels.parts.grouping import AlongAxes, Segments
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan
from warpfold.kernels.query import ByKey, Shaped, Whole
from warpfold.kernels.source import ArraySource, GeneratedSource
from warpfold.kernels.sources.sequential import SequentialSource

OF_PAIRS = [op for op in OPS.values() if op.sources == 2 and op.terms is Terms.TOTALS]
SHAPE = (4, 6)
F64 = DTYPES["float64"]


@cache
def backend() -> CpuBackend:
    return CpuBackend(8 << 20, at_once=True)


def source(array: NDArray[Any]) -> ArraySource:
    return ArraySource(array)


def in_order(array: NDArray[Any], *cuts: int) -> SequentialSource:
    return SequentialSource(DTYPES[array.dtype.name], lambda: iter(np.split(array, cuts)), None, array.size)


def defined(answer: reference.Answer | reference.Undefined) -> Any:
    return answer.value if isinstance(answer, reference.Answer) else None


@pytest.mark.parametrize("dtype", [F64, DTYPES["bfloat16"], DTYPES["int64"], DTYPES["uint8"]], ids=lambda row: row.name)
@pytest.mark.parametrize("op", OF_PAIRS, ids=lambda op: op.name)
def test_ops_of_pairs_have_the_values_of_the_definition(op: Op, dtype: DType) -> None:
    chance = random.Random(f"{op.name} {dtype.name}")
    policies = (NanPolicy.PROPAGATE, NanPolicy.OMIT) if dtype.is_float else (NanPolicy.PROPAGATE,)
    for policy in policies:
        xs, ys = any_bits(dtype, 24, chance), any_bits(dtype, 24, chance)
        x, y = array_of_bits(xs, dtype), array_of_bits(ys, dtype)

        def wanted(places: Sequence[int], xs: Any = xs, ys: Any = ys, policy: NanPolicy = policy) -> Any:
            first, second = ((dtype, [bits[at] for at in places]) for bits in (xs, ys))
            return defined(reference.of_pairs(op, first, second, policy))

        for first, second in ((source(x), source(y)), (in_order(x, 5), in_order(y, 7, 9))):
            whole = backend().reduce(first, op.name, other=second, nan_policy=policy)
            assert same(whole.value, wanted(range(24)))
        at = np.arange(24).reshape(SHAPE)
        bounds = (0, 0, 1, 24)
        for grouping, places in (
            (AlongAxes((0,)), at.T.tolist()),
            (AlongAxes((1,)), at.tolist()),
            (Segments(bounds), [range(*pair) for pair in pairwise(bounds)]),
        ):
            made = backend().reduce_groups(source(x), SHAPE, grouping, op.name, other=source(y), nan_policy=policy)
            assert all(map(_alike, made.listed(), map(wanted, places)))


def _alike(made: Any, right: Any) -> bool:
    return made is right if made is None or right is None else same(made, right)


TRIPLES = st.lists(
    st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2, st.integers(0, 3)), min_size=1, max_size=6
)


@settings(max_examples=40)
@given(st.sampled_from(WITH_WEIGHTS), TRIPLES)
def test_weights_that_are_frequencies_repeat_the_elements(op: str, rows: list[tuple[float, float, int]]) -> None:
    x, y, w = (np.array(column) for column in zip(*rows, strict=True))
    two, ddof = OPS[op].sources == 2, int(OPS[op].ddof)
    other = source(y) if two else None
    repeated = source(np.repeat(y, w)) if two else None
    if w.sum() <= ddof and op != "sum":
        with pytest.raises(InvalidInput, match="divides by the sum of the weights") as caught:
            backend().reduce(source(x), op, other=other, weights=source(w), ddof=ddof)
        assert caught.value.field == "weights"
        return
    wanted = backend().reduce(source(np.repeat(x, w)), op, other=repeated, ddof=ddof).value
    if math.isnan(wanted):  # a spread of 0
        return
    for weights in (w, w.astype(np.float64)):
        made = backend().reduce(source(x), op, other=other, weights=source(weights), ddof=ddof).value
        assert made == wanted  # zeros may have another sign


def test_weights_of_reliability_divide_as_numpy_cov_does() -> None:
    x, w = np.array([1.0, 2.5, -4.0, 1e3]), np.array([0.5, 2.0, -0.25, 1.0])
    xs, ws = list(map(Fraction, x)), list(map(Fraction, w))
    whole = sum(ws, Fraction(0))
    mean = sum((a * b for a, b in zip(xs, ws, strict=True)), Fraction(0)) / whole
    below = whole - sum((b * b for b in ws), Fraction(0)) / whole
    true = sum((b * (a - mean) ** 2 for a, b in zip(xs, ws, strict=True)), Fraction(0)) / below
    made = backend().reduce(source(x), "var", weights=source(w), weighting=Weighting.RELIABILITY, ddof=1)
    assert made.value == reference.nearest(true, F64)
    positive = np.abs(w)
    made = backend().reduce(source(x), "var", weights=source(positive), weighting=Weighting.RELIABILITY, ddof=1)
    assert made.value == pytest.approx(np.cov(x, aweights=positive, ddof=1), rel=1e-14)


def test_weighted_values_along_axes_are_those_of_each_row() -> None:
    x, w = np.arange(24.0).reshape(SHAPE), np.array([0, 1, 2, -1] * 6).reshape(SHAPE)
    w[1] = 0
    made = backend().reduce_groups(source(x), SHAPE, AlongAxes((1,)), "mean", weights=source(w)).listed()
    rows = [backend().reduce(source(x[at]), "mean", weights=source(w[at])).value for at in (0, 2, 3)]
    assert made == (rows[0], None, *rows[1:])


@pytest.mark.parametrize(
    ("op", "asked", "field"),
    [
        ("mean", {"weights": np.ones(3)}, "weights"),
        ("mean", {"weights": np.zeros(2)}, "weights"),
        ("mean", {"weights": np.array([2**60 + 1, 1])}, "weights"),
        ("max", {"weights": np.ones(2)}, "weights"),
        ("mean", {"weights": np.ones(2), "strategy": "numpy"}, "strategy"),
        ("corr", {}, "other"),
        ("corr", {"other": np.ones(3)}, "other"),
        ("rms", {"other": np.ones(2)}, "other"),
        ("skew", {"ddof": 2}, "ddof"),
        ("skew", {"ddof": 1}, "ddof"),
        ("moment3", {"ddof": 1}, "ddof"),
        ("rms", {"strategy": "numpy"}, "strategy"),
    ],
)
def test_what_an_op_does_not_take_is_named(op: str, asked: dict[str, Any], field: str) -> None:
    taken: dict[str, Any] = {
        name: source(each) if isinstance(each, np.ndarray) else each for name, each in asked.items()
    }
    with pytest.raises(InvalidInput) as caught:
        backend().reduce(source(np.array([0.5, 2.0])), op, **taken)
    assert caught.value.field == field


def test_a_nan_that_is_refused_is_named_by_its_source() -> None:
    x, y = np.array([1.0, 2.0]), np.array([1.0, np.nan])
    for asked in ({"op": "corr", "other": source(y)}, {"op": "mean", "weights": source(y)}):
        with pytest.raises(InvalidInput, match="element 1 is NaN"):
            backend().reduce(source(x), nan_policy=NanPolicy.RAISE, **asked)  # type: ignore[arg-type]


NUMPY: dict[str, Callable[[NDArray[Any]], Any]] = {
    "rms": lambda x: np.sqrt(np.mean(x * x)),
    "sem": lambda x: np.std(x) / np.sqrt(x.size),
    "norm3": lambda x: np.linalg.norm(x, 3),
    "moment3": lambda x: np.mean((x - x.mean()) ** 3),
    "skew": lambda x: np.mean((x - x.mean()) ** 3) / np.std(x) ** 3,
    "corr": lambda x: np.corrcoef(x, -x)[0, 1],
    "cov": lambda x: np.cov(x, -x, ddof=0)[0, 1],
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", NUMPY)
@pytest.mark.parametrize("elements", [[2.0], [2.0, 2.0], [1.0, np.inf], [-np.inf, np.inf], [np.nan, 1.0]])
def test_special_values_are_those_of_numpy(op: str, elements: list[float]) -> None:
    x = np.array(elements)
    other = source(-x) if OPS[op].sources == 2 else None
    assert backend().reduce(source(x), op, other=other).value == pytest.approx(NUMPY[op](x), nan_ok=True)


FOURTHS = Op(
    "fourths", "Σ x⁴", OPS["rms"].result, Terms.TOTALS, Finish.OF_TOTALS, "totals", None, rounds=True,
    totals=("xxxx",), exact=lambda n, ddof, xxxx: Root(xxxx, 1, 4), empty=0,
)  # fmt: skip
"""A row that is added here alone."""


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_a_new_row_has_every_layout(dtype: str) -> None:
    some = [3, -1, 120, 7, 0, 1, -2, 30] if dtype == "int16" else [3, -1, 120, 7, 0, 0.5, 1e-30, -2e30]
    elements = np.array(some * 3, dtype)
    keys = np.array([0, 1, 2] * 8, np.int32)
    exact = [Fraction(each) ** 4 for each in elements.tolist()]

    def wanted(places: Sequence[int]) -> float:
        return reference.nearest(
            sum((exact[at] for at in places), Fraction(0)), DTYPES[FOURTHS.result_dtype(DTYPES[dtype])]
        )

    whole = Whole(source=source(elements), op=FOURTHS)
    assert backend().answer(whole).value == wanted(range(24))
    assert backend().answer(replace(whole, source=in_order(elements, 3))).value == wanted(range(24))
    along = Shaped(source=source(elements), op=FOURTHS, shape=SHAPE, grouping=AlongAxes((0,)))
    assert backend().answer(along).listed() == tuple(map(wanted, np.arange(24).reshape(SHAPE).T.tolist()))
    rows = keyed_arrays([("k", source(keys), "by.0")], [("x", source(elements), "x")])
    (column,) = backend().answer(ByKey(rows, GroupPlan((Aggregation(FOURTHS, 0, "fourths"),)))).columns
    assert column.listed() == [wanted(range(key, 24, 3)) for key in range(3)]


def test_elements_that_are_made_are_reduced_as_those_in_memory() -> None:
    made = GeneratedSource("normal", 3000, 7, F64)
    array = made.read(0, 3000)
    for op in ("rms", "skew"):
        assert backend().reduce(made, op).value == backend().reduce(source(array), op).value
