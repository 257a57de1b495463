"""Compiled powers are the parts that the definition gives, and say which elements they do not serve."""

import numpy as np
import pytest

from tests.support.kernels.conformance import same
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact.expansion import Expansion
from warpfold.kernels.lowering import power_loops, total_states
from warpfold.kernels.source import ArraySource


@pytest.mark.parametrize("factors", ["xxx", "|xxx|", "xxxx"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_parts_are_those_of_the_definition(factors: str, dtype: str) -> None:
    chance = np.random.default_rng(3)
    spread = 60 if dtype == "float32" else 150
    x = (chance.standard_normal(500) * np.exp2(chance.integers(-spread, spread, 500))).astype(dtype)
    x[:2] = 0.0, -0.0
    expansion = Expansion(factors, {"x": DTYPES[dtype]})
    powers = power_loops.fourths if factors == "xxxx" else power_loops.cubes
    parts = np.empty((expansion.width, x.size))
    assert powers(x.astype(np.float64), factors == "|xxx|", parts) == 0
    np.testing.assert_array_equal(parts, expansion.of([x], expansion.base))


@pytest.mark.parametrize("other", [np.nan, np.inf, 1e300, -5e-324, 2.0**-201, 2.0**240])
def test_elements_of_another_class_are_counted(other: float) -> None:
    for powers, width in ((power_loops.cubes, 4), (power_loops.fourths, 6)):
        assert powers(np.array([1.0, other, -2.0]), False, np.empty((width, 3))) == 1


def test_an_array_of_all_classes_has_the_value_that_it_has_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1e300, -1e-300, 3.0, 5e-324, -7e200, 1e100, 0.0] * 3)
    backend, ops = CpuBackend(8 << 20, at_once=True), ("norm3", "norm4", "kurtosis")
    wanted = [backend.reduce(ArraySource(x), op).value for op in ops]
    monkeypatch.setattr(total_states, "_COMPILED_FROM", 0)
    assert all(map(same, [backend.reduce(ArraySource(x), op).value for op in ops], wanted))
