"""Reductions on this machine: by the CPU backend where it is installed, else by NumPy; the same bits."""

import math

import numpy as np
import pytest

from warpfold.client import local
from warpfold.client.local import reduce
from warpfold.kernels.errors import InvalidInput, Unavailable

DATA = np.random.default_rng(9).standard_normal(5000)


@pytest.fixture(params=["with Numba", "without"])
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param == "without":
        monkeypatch.setattr(local, "installed", lambda name: False)
    return bool(request.param == "with Numba")


def test_sums_are_exact(installed: bool) -> None:
    result = reduce(DATA)
    assert (result.value, result.count, result.strategy) == (math.fsum(DATA), DATA.size, "exact")
    assert result.state is not None


@pytest.mark.parametrize("op", ["sum", "mean", "norm1", "sum_squares", "norm2"])
def test_both_ways_give_the_same_bits(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = reduce(DATA, op)
    monkeypatch.setattr(local, "installed", lambda name: False)
    slow = reduce(DATA, op)
    assert (slow.value, slow.state, slow.dtype) == (fast.value, fast.state, fast.dtype)


def test_two_arrays(installed: bool) -> None:
    result = reduce(np.array([1e16, 1, -1e16]), "dot", other=np.array([1.0, 2.0, 1.0]))
    assert result.value == 2.0


def test_two_arrays_of_different_dtypes_give_the_narrowest_that_holds_both(installed: bool) -> None:
    result = reduce(np.array([300.0], dtype=np.float16), "dot", other=np.array([1000.5]))
    assert (result.value, result.dtype) == (300_150.0, "float64")


def test_nothing_has_the_value_that_the_service_gives_it(installed: bool) -> None:
    nothing = DATA[:0]
    assert reduce(nothing).value == reduce(nothing, "dot", other=nothing).value == 0.0
    assert [reduce(nothing, op).value for op in ("norm1", "norm2", "sum_squares")] == [0.0, 0.0, 0.0]
    with pytest.raises(InvalidInput, match="mean of no elements is undefined"):
        reduce(nothing, "mean")


@pytest.mark.usefixtures("installed")
def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidInput, match="unknown op"):
        reduce(DATA, "sun")
    with pytest.raises(InvalidInput, match="dot needs a second source"):
        reduce(DATA, "dot")
    with pytest.raises(InvalidInput, match="5,000 and 4,999 elements"):
        reduce(DATA, "dot", other=DATA[:-1])
    with pytest.raises(InvalidInput, match="sum takes no second source"):
        reduce(DATA, other=DATA)
    with pytest.raises(InvalidInput, match="sum takes no ddof"):
        reduce(DATA, ddof=1)
    with pytest.raises(InvalidInput, match="unknown NaN policy"):
        reduce(DATA, nan_policy="never")


def test_what_needs_the_server_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reduce(DATA, "argmax").value == int(DATA.argmax())
    monkeypatch.setattr(local, "installed", lambda name: False)
    for op, strategy, policy in (
        ("argmax", "auto", "propagate"),
        ("var", "auto", "propagate"),
        ("sum", "numpy", "propagate"),
        ("sum", "auto", "omit"),
    ):
        with pytest.raises(Unavailable, match=r"\[server\]"):
            reduce(DATA, op, strategy=strategy, nan_policy=policy)
