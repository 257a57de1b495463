"""Windows of times have the elements whose times they say, and windows with keys those of their own key."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from warpfold.kernels.backend import GroupedReduction
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.times import Instants
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.parts.rolling import Closed, Rolling, Window
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import SequentialSource

CHANCE = np.random.default_rng(3)
ELEMENTS = CHANCE.integers(-9, 9, 60).astype(np.float64)
KEYS = CHANCE.integers(0, 4, 60)
TIMES = np.cumsum(CHANCE.integers(0, 4, 60)) - 30


@cache
def backend() -> CpuBackend:
    return CpuBackend(8 << 20)


def rolled(window: Window, op: str = "sum", **beside: Any) -> GroupedReduction:
    sources: Any = {name: ArraySource(np.asarray(array)) for name, array in beside.items()}
    return backend().reduce_groups(ArraySource(ELEMENTS), ELEMENTS.shape, Rolling(window), op, **sources)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("closed", Closed)
def test_a_window_has_the_elements_of_its_times_and_of_its_key(closed: Closed, keyed: bool) -> None:
    for width in (1, 3, 1000):
        beside: Any = {"over": TIMES} | ({"keys": KEYS} if keyed else {})
        got = rolled(Window(width=width, closed=closed), **beside)
        for at, (value, count) in enumerate(zip(got.listed(), got.counted(), strict=True)):
            ago = TIMES[at] - TIMES
            within = (ago < width) | ((ago == width) & (closed in (Closed.LEFT, Closed.BOTH)))
            within &= (ago > 0) | ((ago == 0) & (closed in (Closed.RIGHT, Closed.BOTH)))
            within &= (KEYS[at] == KEYS) | (not keyed)
            assert count == within.sum()
            assert value == (ELEMENTS[within].sum() if count else None)


@pytest.mark.parametrize("op", ["sum", "mean", "max", "std"])
def test_windows_with_keys_are_those_of_each_group_alone(op: str) -> None:
    got: Any = np.ma.asarray(rolled(Window(3, min_count=2), op, keys=KEYS.astype(np.uint8)).values)
    for key in range(4):
        alone = ELEMENTS[key == KEYS]
        grouping = Rolling(Window(3, min_count=2))
        wanted = backend().reduce_groups(ArraySource(alone), alone.shape, grouping, op)
        assert got[key == KEYS].tolist() == list(wanted.listed())


def test_a_width_in_words_is_one_of_times() -> None:
    times = SequentialSource(ArraySource(TIMES).dtype, lambda: iter([TIMES]), TIMES.size, meaning=Instants("m"))
    got = backend().reduce_groups(
        ArraySource(ELEMENTS), ELEMENTS.shape, Rolling(Window(width="0.05h")), "sum", over=times
    )
    assert got.listed() == rolled(Window(width=3), over=TIMES).listed()


@pytest.mark.parametrize(
    ("beside", "field", "words"),
    [
        ({"over": TIMES[::-1]}, "over", "not sorted: element 2 has an earlier time"),
        ({"over": TIMES[:-1]}, "over", "has 59 elements, and the source has 60"),
        ({"over": TIMES * 1.0}, "over", "other than instants, durations or integers"),
        ({}, "over", "needs the times"),
        ({"over": TIMES, "keys": ELEMENTS}, "keys", "other than integers or truth values"),
    ],
)
def test_times_and_keys_that_do_not_fit_are_refused(beside: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        rolled(Window(width=2), **beside)
    assert refused.value.field == field


def test_the_row_of_an_earlier_time_is_that_in_the_array() -> None:
    times = np.array([5, 1, 6, 2, 4, 3])
    with pytest.raises(InvalidInput, match="element 4 has an earlier time"):
        backend().reduce_groups(
            ArraySource(np.ones(6)), (6,), Rolling(Window(width=2)), "sum",
            over=ArraySource(times), keys=ArraySource(np.array([1, 0, 1, 0, 1, 0])),
        )  # fmt: skip


def test_numbers_have_no_duration() -> None:
    with pytest.raises(InvalidInput, match="has numbers and no times") as refused:
        rolled(Window(width="1s"), over=TIMES)
    assert refused.value.field == "window.width"


def test_windows_of_times_move_along_an_axis() -> None:
    times = np.array([[0, 1, 5], [0, 3, 4]])
    grouping = Rolling(Window(width=2), AlongAxes((1,)))
    got = backend().reduce_groups(ArraySource(np.ones((2, 3))), (2, 3), grouping, "sum", over=ArraySource(times))
    assert got.listed() == (1.0, 2.0, 1.0, 1.0, 1.0, 2.0)
