"""Partial results of kernels become values by exact arithmetic."""

import math
import struct
from fractions import Fraction

import numpy as np
import pytest

from warpfold.kernels.cuda.strategies.partial_results import NOWHERE, PartialResult, value_of
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS, Value


def integer(value: int, first: int = 0) -> PartialResult:
    return PartialResult(np.frombuffer(value.to_bytes(32, "little", signed=True), np.uint64), first)


def real(value: float, correction: float = 0.0, first: int = 0) -> PartialResult:
    return PartialResult(np.frombuffer(struct.pack("<4d", value, correction, 0, 0), np.uint64), first)


def product(significand: float, exponent: int) -> PartialResult:
    return PartialResult(np.frombuffer(struct.pack("<dqdd", significand, exponent, 0, 0), np.uint64), 0)


def place(index: int, key: int, first: int = 0) -> PartialResult:
    return PartialResult(np.array([index, key, 0, 0], np.uint64), first)


def value(op: str, dtype: str, outcomes: list[PartialResult], count: int = 1) -> Value:
    return value_of(OPS[op], DTYPES[dtype], outcomes, count)


def test_integers_of_all_pieces_add_up_beyond_64_bits() -> None:
    assert value("sum", "int64", [integer(-(2**90)), integer(2**64 - 1)]) == 2**64 - 1 - 2**90
    assert value("sum_squares", "uint64", [integer(2**160)]) == 2**160


def test_the_mean_and_norm_of_integers_are_correctly_rounded() -> None:
    assert value("mean", "int64", [integer(2**80 + 1)], 3) == float(Fraction(2**80 + 1, 3))
    assert value("norm2", "int32", [integer(2)], 2) == math.sqrt(2)


def test_a_total_and_its_correction_are_rounded_once() -> None:
    # 1 + 2**-24 alone would tie down to 1; with 2**-60 more it rounds up.
    assert value("sum", "float32", [real(1.0, 2.0**-24 + 2.0**-60)]) == 1.0 + 2.0**-23
    assert value("sum", "bfloat16", [real(1.0 + 2.0**-8, 2.0**-60)]) == 1.0 + 2.0**-7


def test_pieces_that_cancel_are_added_exactly() -> None:
    assert value("sum", "float64", [real(1e300), real(1.0), real(-1e300)]) == 1.0


def test_only_negative_zeros_give_a_negative_zero() -> None:
    assert math.copysign(1, float(value("sum", "float32", [real(-0.0), real(-0.0)]))) == -1
    assert math.copysign(1, float(value("sum", "float32", [real(-0.0), real(0.0)]))) == 1
    assert math.copysign(1, float(value("sum", "float32", [real(1.0), real(-1.0)]))) == 1


def test_what_is_not_finite_follows_ieee() -> None:
    assert value("sum", "float32", [real(math.inf), real(1.0)]) == math.inf
    assert math.isnan(float(value("sum", "float32", [real(math.inf), real(-math.inf)])))
    assert value("norm2", "float64", [real(math.inf)]) == math.inf
    assert math.isnan(float(value("norm2", "float64", [real(math.nan)])))


def test_a_result_beyond_the_dtype_is_infinite() -> None:
    assert value("sum", "float16", [real(65520.0)]) == math.inf
    assert value("sum", "float16", [real(65519.0)]) == 65504.0


def test_a_product_is_scaled_once() -> None:
    assert value("prod", "float64", [product(1.5, -1074), product(-1.0, 1)]) == -3 * 2.0**-1074
    assert value("prod", "float64", [product(1.5, 10**12)]) == math.inf
    small = float(value("prod", "float32", [product(-1.5, -(10**12))]))
    assert (small, math.copysign(1, small)) == (0.0, -1.0)
    assert math.isnan(float(value("prod", "float32", [product(0.0, 5), product(math.inf, 0)])))


def test_the_extremum_of_all_pieces_counts() -> None:
    assert value("max", "int8", [integer(-3), integer(-2)]) == -2
    assert value("min", "float32", [real(0.0), real(-0.0)]) == 0.0
    assert math.copysign(1, float(value("min", "float32", [real(0.0), real(-0.0)]))) == -1
    assert math.isnan(float(value("max", "float32", [real(5.0), real(math.nan)])))
    assert value("max", "bool", [integer(0), integer(1)]) is True
    assert value("norm_inf", "bool", [integer(1)]) == 1


def test_the_lowest_key_and_then_the_lowest_index_is_the_place() -> None:
    assert value("argmin", "float32", [place(4, 7), place(12, 6, 10), place(20, 6, 20)]) == 12


def test_a_piece_that_nothing_beat_the_worst_in_counts_from_its_start() -> None:
    worst = 2**32 - 1
    assert value("argmin", "int32", [place(NOWHERE, worst, 0), place(NOWHERE, worst, 10)]) == 0
    assert value("argmin", "int32", [place(NOWHERE, worst, 0), place(13, 5, 10)]) == 13


@pytest.mark.parametrize(("nonzero", "any_", "all_"), [(0, False, False), (2, True, False), (3, True, True)])
def test_tests_follow_from_the_count(nonzero: int, any_: bool, all_: bool) -> None:
    assert value("any", "float32", [integer(nonzero)], 3) is any_
    assert value("all", "float32", [integer(nonzero)], 3) is all_
    assert value("count_nonzero", "float32", [integer(nonzero)], 3) == nonzero
    assert value("prod", "bool", [integer(nonzero)], 3) == int(all_)
    assert value("mean", "bool", [integer(nonzero)], 3) == nonzero / 3
