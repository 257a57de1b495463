"""Values of windows: device code on the host, against rationals."""

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.kernels import on_host
from tests.support.kernels.grouped_on_host import HostGpu, as_cupy, host_array
from warpfold.kernels.cuda.rolling import values as values_module
from warpfold.kernels.cuda.rolling.values import WindowPlaces, WindowValues
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import round_ratio
from warpfold.kernels.ops import OPS, Op

Array = NDArray[Any]
Spans = Sequence[tuple[int, int]]
Values = Callable[..., tuple[Array, Array]]

ON_HOST = ("bool", "int8", "int64", "uint64", "bfloat16", "float32", "float64")
NAMES = ("sum", "mean", "norm1", "min", "max", "norm_inf", "count", "count_nonzero", "any", "all")


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> Values:
    """The values of windows, and how many elements enter each."""
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    monkeypatch.setitem(sys.modules, "cupy", as_cupy())
    monkeypatch.setattr(values_module, "THREADS", 32)
    monkeypatch.setattr(values_module, "SCAN_THREADS", 32)
    gpu: Any = HostGpu(None, typed={"windows": on_host.build_windows().window_by_name})

    def run(array: Array, places: WindowPlaces, op: Op, *, omit: bool = False) -> tuple[Array, Array]:
        made = WindowValues(gpu, host_array(array), DTYPES[array.dtype.name], places, op, omit=omit)
        assert made.holds()
        counts = made.counts()
        return np.asarray(made.values(counts)), counts

    return run


def right(op: Op, members: list[Any], dtype: DType) -> Any:  # noqa: PLR0911
    """The value of these elements, by rational arithmetic; None where any will do."""
    nans = any(x != x for x in members)  # noqa: PLR0124 - NaN
    if op.name in ("count", "count_nonzero"):
        return len(members) if op.name == "count" else sum(x != 0 for x in members)
    if op.name in ("any", "all"):
        return any(x != 0 for x in members) if op.name == "any" else all(x != 0 for x in members)
    if not members:
        return None
    if op.magnitudes:
        members = [abs(x) for x in members]
    if nans:
        return math.nan
    if op.extreme is not None:
        best = min if op.name == "min" else max
        return best(members, key=lambda x: (x, math.copysign(1.0, x) if dtype.is_float else 0))
    infinite = {x for x in members if math.isinf(x)}
    if infinite:
        return infinite.pop() if len(infinite) == 1 else math.nan
    total, divisor = sum(map(Fraction, members)), len(members) if op.name == "mean" else 1
    if not dtype.is_float and op.name != "mean":
        return int(total)
    if not total:
        return -0.0 if dtype.is_float and all(math.copysign(1.0, x) < 0 for x in members) else 0.0
    result = dtype if dtype.is_float else DTYPES["float64"]
    return round_ratio(total.numerator, total.denominator * divisor, 0, result)


def elements(dtype: DType, size: int, random: np.random.Generator, kind: str) -> Array:
    """Elements of a kind: floats that differ by less than 2^60, among them specials or zeros alone, and integers."""
    if dtype.name == "bool":
        return random.integers(0, 2, size).astype(bool)
    if not dtype.is_float:
        word = np.uint64 if dtype.bounds[0] == 0 else np.int64
        made = random.integers(*dtype.bounds, size, word, endpoint=True)
        return np.where(random.random(size) < 0.3, random.integers(0, 3, size, word), made).astype(dtype.numpy)
    spread = {"float64": 25, "float32": 20, "bfloat16": 50}[dtype.name]
    least = {"normal": 0, "large": dtype.max_exponent - spread, "least": dtype.min_exponent}.get(kind, 0)
    made = np.ldexp(random.uniform(-1, 1, size), least + random.integers(0, spread, size))
    with np.errstate(over="ignore"):
        made = made.astype(dtype.numpy)
    if kind == "specials":
        some = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0])
        made = np.where(random.random(size) < 0.2, random.choice(some, size).astype(dtype.numpy), made)
    if kind == "zeros":
        made = random.choice(np.array([-0.0, -0.0, -0.0, 0.0, np.nan]), size).astype(dtype.numpy)
    return np.asarray(made)


def places_of(size: int, random: np.random.Generator) -> list[tuple[WindowPlaces, Spans]]:
    """Windows of all kinds, and where each begins and ends."""

    def even(length: int, rows: int, ahead: int) -> tuple[WindowPlaces, Spans]:
        spans = []
        for at in range(size):
            start = at // length * length
            end = at + 1 + ahead
            spans.append((max(start, end - rows) if rows else start, min(end, start + length)))
        return WindowPlaces(None, None, length, rows, ahead, max(j - i for i, j in spans)), spans

    begins = np.sort(random.integers(0, size, size))
    ends = np.minimum(begins + random.integers(0, 70, size), size)
    anywhere = list(zip(begins.tolist(), ends.tolist(), strict=True))
    longest = int((ends - begins).max())
    return [
        even(size, 0, 0),
        even(size, 5, 0),
        even(size, 300, 149),
        even(size // 4, 0, 0),
        even(size // 4, 8, 3),
        (WindowPlaces(host_array(begins), host_array(ends), size, 0, 0, longest), anywhere),
    ]


@pytest.mark.parametrize("name", ON_HOST)
def test_every_window_has_the_true_value_rounded_once(values: Values, name: str) -> None:
    dtype, random = DTYPES[name], np.random.default_rng(5)
    kinds = ("normal", "large", "least", "specials", "zeros") if dtype.is_float else ("integers",)
    for kind in kinds:
        array = elements(dtype, 332, random, kind)
        names = NAMES if kind in ("specials", "integers") else ("sum", "mean", "max")
        listed = array.astype(np.float64).tolist() if dtype.is_float else array.tolist()
        for number, (places, spans) in enumerate(places_of(array.size, random)):
            for op in (OPS[each] for each in names):
                for omit in (False, True) if kind in ("specials", "zeros") else (False,):
                    made, counts = values(array, places, op, omit=omit)
                    for at in (0, array.size - 1, *random.integers(0, array.size, 10).tolist()):
                        begin, end = spans[at]
                        members = [x for x in listed[begin:end] if not (omit and x != x)]  # noqa: PLR0124 - NaN
                        assert counts[at] == len(members)
                        want = right(op, members, dtype)
                        mine = made[at].item() if hasattr(made[at], "item") else made[at]
                        assert want is None or repr(mine) == repr(want), (op.name, kind, number, at, members[:20])


def test_numbers_too_far_apart_are_not_taken(values: Values) -> None:
    places = WindowPlaces(None, None, 2, 0, 0, 2)
    near, far = np.array([2.0**120, 1.0]), np.array([2.0**126, 1.0])
    assert values(near, places, OPS["sum"])[0].tolist() == [2.0**120, 2.0**120]
    assert values(far, places, OPS["max"])[0].tolist() == [2.0**126, 2.0**126]
    with pytest.raises(AssertionError):
        values(far, places, OPS["sum"])
