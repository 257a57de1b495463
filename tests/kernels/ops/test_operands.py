"""Ops of two sources and ops that divide by degrees of freedom, on the CPU."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels.conformance import check_dots, same, source
from tests.support.kernels.patterns import patterns
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState, variance
from warpfold.kernels.ops import OPS, NanPolicy, Terms, reference
from warpfold.kernels.source import ArraySource, GeneratedSource

KINDS = [(a, b) for a in DTYPES.values() for b in DTYPES.values() if a.is_float == b.is_float]


@pytest.fixture(scope="module")
def backend() -> CpuBackend:
    return CpuBackend()


def test_dot_products_have_the_values_and_states_of_the_vectors(backend: CpuBackend) -> None:
    check_dots(backend)


@given(
    drawn=st.sampled_from(KINDS).flatmap(lambda kinds: st.tuples(st.just(kinds), *map(patterns, kinds))),
    policy=st.sampled_from((NanPolicy.PROPAGATE, NanPolicy.OMIT)),
)
def test_dot_products_of_any_two_dtypes_of_a_kind_are_what_they_are_by_definition(
    backend: CpuBackend, drawn: tuple[tuple[DType, DType], list[int], list[int]], policy: NanPolicy
) -> None:
    (left, right), xs, ys = drawn
    length = min(len(xs), len(ys))
    xs, ys = xs[:length], ys[:length]
    wanted = reference.of_pairs(OPS["dot"], (left, xs), (right, ys), policy)
    assert isinstance(wanted, reference.Answer)
    reduction = backend.reduce(source(xs, left), "dot", other=source(ys, right), nan_policy=policy)
    assert same(reduction.value, wanted.value), (reduction.value, wanted.value)
    assert reduction.count == wanted.count


@pytest.mark.parametrize("strategy", ["exact", "numpy"])
@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("float32", "float32", "float32"),
        ("float16", "bfloat16", "float32"),
        ("bfloat16", "bfloat16", "bfloat16"),
        ("bfloat16", "float64", "float64"),
        ("int8", "uint64", "integer"),
        ("bool", "bool", "integer"),
    ],
)
def test_a_dot_product_has_the_narrowest_float_that_holds_both_or_is_an_integer(
    backend: CpuBackend, left: str, right: str, result: str, strategy: str
) -> None:
    first, second = (ArraySource(np.array([1, 0, 1]).astype(DTYPES[name].numpy)) for name in (left, right))
    reduction = backend.reduce(first, "dot", strategy=strategy, other=second)
    assert (reduction.dtype, reduction.value) == (result, 2)


def test_a_dot_product_that_cancels_is_exact_where_numpys_is_not(backend: CpuBackend) -> None:
    x = ArraySource(np.array([2.0**60, 1.0, -(2.0**60)]))
    y = ArraySource(np.array([2.0**60, 1.0, 2.0**60]))
    assert backend.reduce(x, "dot", other=y).value == 1.0
    assert backend.reduce(x, "dot", strategy="numpy", other=y).value == 0.0


@pytest.mark.parametrize("strategy", ["exact", "numpy"])
def test_nan_in_either_source_is_refused_by_name_or_left_out_with_its_pair(backend: CpuBackend, strategy: str) -> None:
    numbers = ArraySource(np.array([1.0, 2.0, 3.0]))
    broken = ArraySource(np.array([1.0, np.nan, 3.0]))
    for first, second, message in (
        (broken, numbers, "^element 1 is NaN"),
        (numbers, broken, "^other element 1 is NaN"),
    ):
        with pytest.raises(InvalidInput, match=message):
            backend.reduce(first, "dot", strategy=strategy, other=second, nan_policy=NanPolicy.RAISE)
        reduction = backend.reduce(first, "dot", strategy=strategy, other=second, nan_policy=NanPolicy.OMIT)
        assert (reduction.value, reduction.count) == (10.0, 2)


TWO = ArraySource(np.array([1.0, 2.0]))


@pytest.mark.parametrize("strategy", ["exact", "numpy"])
@pytest.mark.parametrize(
    ("op", "others", "field", "message"),
    [
        ("dot", (None, 0), "other", "dot needs a second source"),
        ("sum", (TWO, 0), "other", "sum takes no second source"),
        ("dot", (ArraySource(np.ones(3)), 0), "other", "needs two sources of one length, not 2 and 3 elements"),
        ("dot", (ArraySource(np.ones(2, dtype=np.int32)), 0), "other", "dot of float64 with int32 is not defined"),
        ("sum", (None, 1), "ddof", "sum takes no ddof"),
        ("var", (None, -1), "ddof", "must not be negative"),
        ("var", (None, 2), "ddof", "var of 2 elements with ddof 2 is undefined: it divides by n − ddof = 0"),
        ("std", (None, 5), "ddof", "std of 2 elements with ddof 5 is undefined: it divides by n − ddof = -3"),
    ],
)
def test_operands_that_do_not_fit_the_op_are_refused_with_the_field(
    strategy: str, op: str, others: tuple[ArraySource | None, int], field: str, message: str
) -> None:
    other, ddof = others
    with pytest.raises(InvalidInput, match=message) as raised:
        CpuBackend().reduce(TWO, op, strategy=strategy, other=other, ddof=ddof)
    assert raised.value.field == field


def test_degrees_of_freedom_count_what_is_left_after_nans_are_omitted(backend: CpuBackend) -> None:
    data = ArraySource(np.array([1.0, np.nan, 3.0]))
    assert backend.reduce(data, "var", nan_policy=NanPolicy.OMIT, ddof=1).value == 2.0
    with pytest.raises(InvalidInput, match="var of 2 elements with ddof 2"):
        backend.reduce(data, "var", nan_policy=NanPolicy.OMIT, ddof=2)
    with pytest.raises(InvalidInput, match="element 1 is NaN"):
        backend.reduce(data, "std", nan_policy=NanPolicy.RAISE)


def test_a_variance_far_from_zero_does_not_cancel(backend: CpuBackend) -> None:
    data = ArraySource(np.array([1e15 + 4, 1e15 + 7, 1e15 + 13, 1e15 + 16]))
    assert backend.reduce(data, "var", ddof=1).value == 30.0


def test_a_variance_has_no_single_state(backend: CpuBackend) -> None:
    assert backend.reduce(TWO, "std").state is None


def test_long_reductions_have_the_states_of_their_arrays(backend: CpuBackend) -> None:
    x = GeneratedSource("normal", 400_000, 42, DTYPES["float32"])
    y = GeneratedSource("mixed", 400_000, 43, DTYPES["float64"])
    array = x.read(0, x.count)
    product = backend.reduce(x, "dot", other=y)
    assert product.state is not None
    wanted = ExactState.empty(Terms.PRODUCTS).add_products(array, y.read(0, y.count))
    assert ExactState.from_bytes(product.state) == wanted
    values, squares = (ExactState.empty(terms).add(array) for terms in (Terms.VALUES, Terms.PRODUCTS))
    assert backend.reduce(x, "var", ddof=1).value == variance(values, squares, 1, DTYPES["float32"])
