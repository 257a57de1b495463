"""Windows that move along an array have the values of the definition at every place, whatever has passed through."""

import random
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.support.kernels.conformance import same
from tests.support.kernels.patterns import any_bits, array_of_bits
from warpfold.kernels.backend import GroupedReduction
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cpu.rolling import elements
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import OPS, NanPolicy, Op, reference
from warpfold.kernels.parts.grouping import AlongAxes, Segments
from warpfold.kernels.parts.rolling import Rolling, Window
from warpfold.kernels.source import ArraySource

ROLLED = (
    *("sum", "mean", "norm1", "sum_squares", "norm2", "rms", "var", "std", "sem"),
    *("min", "max", "norm_inf", "count", "count_nonzero", "any", "all"),
)
WINDOWS = (Window(), Window(1), Window(5, min_count=5), Window(6, centred=True, min_count=2), Window(1000, min_count=0))
COUNT = 24


@cache
def backend() -> CpuBackend:
    return CpuBackend(8 << 20)


def rolled(
    array: Any, op: str, grouping: Rolling, policy: NanPolicy = NanPolicy.PROPAGATE, ddof: int = 0
) -> GroupedReduction:
    return backend().reduce_groups(ArraySource(array), array.shape, grouping, op, nan_policy=policy, ddof=ddof)


def places_of(window: Window, at: int, start: int, stop: int) -> range:
    """The window of element `at` in the line from `start` to `stop`."""
    if window.rows is None:
        return range(start, at + 1)
    last = at + ((window.rows - 1) // 2 if window.centred else 0)
    return range(max(start, last - window.rows + 1), min(stop, last + 1))


def check(got: GroupedReduction, op: Op, dtype: DType, bits: list[list[int]], how: tuple[NanPolicy, int, int]) -> None:
    policy, least, ddof = how
    for at, (value, count, window) in enumerate(zip(got.listed(), got.counted(), bits, strict=True)):
        wanted = reference.reduce(op, dtype, window, policy, ddof=ddof)
        entered = [bit for bit in window if not (policy is NanPolicy.OMIT and reference.element(bit, dtype).nan)]
        assert count == len(entered), at
        if isinstance(wanted, reference.Undefined) or count < least:
            assert value is None, at
        else:
            assert value is not None
            assert same(value, wanted.value), (at, value, wanted)


@pytest.mark.parametrize("name", ROLLED)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_each_value_is_that_of_its_window(dtype: DType, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(f"{dtype.name} {name}")
    of_bits = {bit: reference.element(bit, dtype) for bit in any_bits(dtype, 8 * COUNT, chance)}
    finite = [bit for bit, x in of_bits.items() if not (x.nan or x.infinite)]
    finite = [chance.choice(finite) for _ in range(COUNT)]
    ddof = int(OPS[name].ddof)
    for chunk, bits in ((8, any_bits(dtype, COUNT, chance)), (1 << 16, finite)):
        monkeypatch.setattr(elements, "CHUNK", chunk)
        for window, policy in zip(WINDOWS, (NanPolicy.PROPAGATE, NanPolicy.OMIT) * 3, strict=False):
            got = rolled(array_of_bits(bits, dtype), name, Rolling(window), policy, ddof)
            wanted = [[bits[place] for place in places_of(window, at, 0, COUNT)] for at in range(COUNT)]
            check(got, OPS[name], dtype, wanted, (policy, window.min_count, ddof))


@pytest.mark.parametrize("name", ["sum", "max", "mean"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_windows_move_along_an_axis(name: str, axis: int) -> None:
    dtype, shape = DTYPES["float32"], (4, 3, 5)
    bits = np.array(any_bits(dtype, 60, random.Random(axis)), np.uint32).reshape(shape)
    got = rolled(bits.view(np.float32), name, Rolling(Window(3), AlongAxes((axis,))))
    assert got.shape == shape
    lines = np.moveaxis(bits, axis, -1)
    for index in np.ndindex(lines.shape[:-1]):
        line = lines[index].tolist()
        values = np.moveaxis(np.array(got.listed(), object).reshape(shape), axis, -1)[index]
        for at, value in enumerate(values):
            wanted = reference.reduce(OPS[name], dtype, line[max(0, at - 2) : at + 1], NanPolicy.PROPAGATE)
            assert isinstance(wanted, reference.Answer)
            assert same(value, wanted.value)


def test_windows_begin_anew_in_each_segment_and_elements_in_none_have_no_value() -> None:
    array = np.array([9.0, 1.0, 2.0, 3.0, 10.0, 20.0, 9.0])
    got = rolled(array, "sum", Rolling(Window(), Segments((1, 4, 4, 6))))
    assert got.listed() == (None, 1.0, 3.0, 6.0, 10.0, 30.0, None)
    assert got.counted() == (0, 1, 2, 3, 1, 2, 0)


@pytest.mark.parametrize("op", ROLLED)
def test_elements_in_no_segment_have_no_value_though_a_window_needs_no_elements(op: str) -> None:
    array = np.array([9.0, np.nan, 2.0, 3.0, 10.0, 20.0, 9.0])
    for rows in (None, 2, 9):
        window = Rolling(Window(rows, min_count=0), Segments((1, 4, 4, 6)))
        got = rolled(array, op, window, NanPolicy.OMIT)
        undefined = [1] if OPS[op].empty is None else []
        assert [at for at, value in enumerate(got.listed()) if value is None] == [0, *undefined, 6]
        assert (got.counted()[0], got.counted()[6]) == (0, 0)


def test_two_levels_and_limbs_give_the_bits_of_exact_sums() -> None:
    chance = np.random.default_rng(5)
    array = chance.standard_normal(900)
    array[400:410] *= 2.0**300
    array[600:605] *= 2.0**-200
    exact = [float(sum(map(Fraction, array[max(0, at - 99) : at + 1].tolist()))) for at in range(array.size)]
    assert rolled(array, "sum", Rolling(Window(100))).listed() == tuple(exact)


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_running_sums_are_the_same_in_chunks_of_any_length(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.random.default_rng(6).standard_normal(5000) + 3.0
    whole = rolled(array, name, Rolling(Window()))
    monkeypatch.setattr(elements, "CHUNK", 700)
    parts = rolled(array, name, Rolling(Window()))
    assert whole.listed() == parts.listed()


REPORTED: list[tuple[str, str, list[float], int, list[float]]] = [
    ("polars 24738", "sum", [2.06, 0.888889, 0.0, 0.0, 0.0], 2, [2.06, 2.06 + 0.888889, 0.888889, 0.0, 0.0]),
    ("polars 22445", "sum", [1, 2, 3, 1e90, 4, 5, 6], 2, [1, 3, 5, 1e90, 1e90, 9, 11]),
    ("polars 18919", "mean", [1.0, np.inf, 2.0, 4.0, -np.inf, 4.0], 2, [1, np.inf, np.inf, 3, -np.inf, -np.inf]),
    ("pandas 11645", "mean", [0, 1, -9e33, 3, 4, 5, 6], 3, [0, 0.5, -3e33, -3e33, -3e33, 4, 5]),
    ("pandas 36031", "mean", [3002399751580331.0, -0.0, -0.0], 1, [3002399751580331.0, -0.0, -0.0]),
    ("pandas 19308", "sum", [1.0001, 1.0001, 0.0, 0.0], 2, [1.0001, 2.0002, 1.0001, 0.0]),
    ("a largest float", "sum", [1e308, 1e308, 1.0, 1.0], 2, [1e308, np.inf, 1e308, 2.0]),
    ("a NaN", "sum", [1.0, np.nan, 2.0, 3.0], 2, [1.0, np.nan, np.nan, 5.0]),
]  # fmt: skip
"""Public reports of windows in which what had left them stayed, with the right values."""


@pytest.mark.parametrize(
    ("op", "elements", "rows", "right"), [case[1:] for case in REPORTED], ids=[case[0] for case in REPORTED]
)
def test_nothing_of_what_has_left_a_window_stays(op: str, elements: list[float], rows: int, right: list[float]) -> None:
    values = np.asarray(rolled(np.array(elements, np.float64), op, Rolling(Window(rows))).values).tolist()
    assert all(same(value, float(wanted)) for value, wanted in zip(values, right, strict=True)), values


def test_an_op_that_windows_have_not_is_refused() -> None:
    with pytest.raises(InvalidInput, match="windows have sum") as caught:
        rolled(np.ones(3), "argmax", Rolling(Window(2)))
    assert caught.value.field == "op"


def test_a_window_moves_along_one_axis() -> None:
    with pytest.raises(InvalidInput, match="along one axis") as caught:
        rolled(np.ones((3, 2)), "sum", Rolling(Window(2), AlongAxes((0, 1))))
    assert caught.value.field == "axis"


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_no_elements_have_no_values(shape: tuple[int, ...]) -> None:
    got = rolled(np.ones(shape), "sum", Rolling(Window(2), AlongAxes((0,))))
    assert got.shape == shape
    assert got.listed() == ()
