"""The third and fourth powers of floats as sums of float64, compiled: what `kernels.exact.expansion` defines, for
elements that are finite and of class 0. Squares of float32 have no errors, and so two parts are all. It imports
Numba."""

from collections.abc import Callable, Mapping
from typing import Any

from warpfold.kernels.exact.expansion import HIGH, LOW, SPLITTER, Expansion
from warpfold.kernels.machine.jit import jit


@jit
def _high(x: Any) -> Any:
    """The upper 26 bits of x (Veltkamp)."""
    split = x * SPLITTER
    return split - (split - x)


@jit
def _error(x: Any, y: Any, product: Any) -> Any:
    """x y − `product`, which is x y rounded (Dekker)."""
    x_high, y_high = _high(x), _high(y)
    x_low, y_low = x - x_high, y - y_high
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


@jit
def cubes(x: Any, magnitudes: Any, parts: Any) -> Any:
    """Set parts[0 … 3, i], or of float32 parts[0 … 1, i], to floats whose sum is x[i]³ or |x[i]|³. Returns
    how many elements it does not serve."""
    others = 0
    for i in range(x.size):
        a = abs(x[i]) if magnitudes else x[i]
        others += not (LOW <= abs(a) < HIGH or a == 0.0)
        square = a * a
        rest = _error(a, a, square)
        parts[0, i] = square * a
        parts[1, i] = _error(square, a, square * a)
        if parts.shape[0] > 2:
            parts[2, i] = rest * a
            parts[3, i] = _error(rest, a, rest * a)
    return others


@jit
def fourths(x: Any, magnitudes: Any, parts: Any) -> Any:
    """Set parts[0 … 5, i], or of float32 parts[0 … 1, i], to floats whose sum is x[i]⁴. Returns how many
    elements it does not serve."""
    others = 0
    for i in range(x.size):
        a = x[i]
        others += not (LOW <= abs(a) < HIGH or a == 0.0)
        square = a * a
        rest = _error(a, a, square)
        parts[0, i] = square * square
        parts[1, i] = _error(square, square, square * square)
        if parts.shape[0] > 2:
            doubled = 2.0 * square
            parts[2, i] = rest * rest
            parts[3, i] = _error(rest, rest, rest * rest)
            parts[4, i] = doubled * rest
            parts[5, i] = _error(doubled, rest, doubled * rest)
    return others


def powers_of(expansion: Expansion) -> Callable[..., int] | None:
    """The function that makes the products of an expansion, of float64 as which its elements are read; None where there
    is none."""
    if any(dtype.name not in ("float32", "float64") for dtype in expansion.dtypes.values()):
        return None
    made: Mapping[str, Callable[..., int]] = {"xxx": cubes, "|xxx|": cubes, "xxxx": fourths}
    return made.get(expansion.factors)
