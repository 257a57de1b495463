"""In what arithmetic each method is said to compute."""

import pytest

from warpfold.kernels.accuracy.arithmetic import Arithmetic, Scheme, arithmetic_of
from warpfold.kernels.accuracy.methods import methods
from warpfold.kernels.accuracy.point import AccuracyCase

N = 1000


def of(method: str, op: str = "sum", dtype: str = "float32", backend: str = "cuda", n: int = N) -> Arithmetic:
    return arithmetic_of(AccuracyCase(method, op, "normal", dtype, n), backend)


@pytest.mark.parametrize(
    ("method", "height"),
    [("sequential", 999), ("reverse", 999), ("sorted_descending", 999), ("tree", 10), ("pairwise", 127 + 3)],
)
def test_a_loop_adds_in_the_dtype_and_as_often_as_its_order_says(method: str, height: int) -> None:
    assert of(method) == Arithmetic(Scheme.ADDITIONS, 24, height)
    assert of(method, dtype="bfloat16").precision == 8


def test_products_are_rounded_before_they_are_added_and_means_and_norms_after() -> None:
    assert of("tree", "dot") == Arithmetic(Scheme.ADDITIONS, 24, 10, terms=24)
    assert of("tree", "norm2") == Arithmetic(Scheme.ADDITIONS, 24, 10, terms=24, roundings=1)
    assert of("tree", "mean") == Arithmetic(Scheme.ADDITIONS, 24, 10, roundings=1)


def test_a_float64_accumulator_takes_products_of_narrower_numbers_exactly() -> None:
    assert of("float64_accumulator", "dot") == Arithmetic(Scheme.ADDITIONS, 53, 999, roundings=1)
    assert of("float64_accumulator", "dot", "float64") == Arithmetic(Scheme.ADDITIONS, 53, 999, terms=53)


def test_numpy_adds_float16_in_float32() -> None:
    assert of("numpy", dtype="float16") == Arithmetic(Scheme.ADDITIONS, 24, 30, roundings=1)
    assert of("numpy", dtype="float64") == Arithmetic(Scheme.ADDITIONS, 53, 30)


def test_kernels_of_ours_add_as_their_catalogue_rows_say() -> None:
    assert of("single_pass") == Arithmetic(Scheme.ADDITIONS, 24, N, roundings=1)
    assert of("single_pass", "norm2").precision == 53
    assert of("single_pass", "norm2", "float16").precision == 24
    assert of("cuda_pairwise").height == 10 + 22
    assert of("cuda_float64_accumulator").precision == 53
    assert of("compensated").scheme is Scheme.NEUMAIER


def test_of_a_library_that_promises_nothing_any_order_is_assumed() -> None:
    for method in ("torch", "cupy", "cub", "thrust"):
        assert of(method) == Arithmetic(Scheme.ADDITIONS, 24, N)
        assert of(method, "mean").roundings == 2


def test_every_method_has_an_arithmetic() -> None:
    for method in methods():
        for op in ("sum", "mean", "dot", "norm2", "prod"):
            assert of(method, op).scheme in Scheme
    assert of("exact") == of("exact", backend="cpu") == Arithmetic(Scheme.EXACT)
