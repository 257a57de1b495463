"""The methods that are loops: each computes a value of the dtype on one thread of the host."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.accuracy import loops
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import round_ratio, round_sqrt

_SINGLE = DTYPES["float32"].precision
_PRODUCTS = ("dot", "norm2")


def looped(method: str, op: str, operands: tuple[NDArray[Any], ...], dtype: DType) -> float:
    """`op` by `method` over arrays of `dtype`, shape (n,), n ≥ 1: first the terms, each rounded to the dtype, then the
    loop, then for a mean or a norm one division or root, rounded once.

    Raises InvalidInput where there is no such loop: compensation is of sums.
    """
    product = True if op == "prod" else None
    with np.errstate(all="ignore"):
        if method == "float64_accumulator":
            wide = np.dtype(np.float64) if op in _PRODUCTS else dtype.numpy
            total = float(loops.wide_chain(_held(_terms(op, operands, wide)), product))
        else:
            grain = np.uint32(_SINGLE - dtype.precision) if dtype.itemsize == 2 else None
            total = float(_run(method, _held(_terms(op, operands, dtype.numpy)), grain, product))
    return _finished(op, total, operands[0].size, dtype)


def how(method: str, dtype: DType) -> str:
    """How a loop computes, for people."""
    if method == "float64_accumulator":
        return f"compiled by Numba, one thread of the host, float64 arithmetic, then rounded to {dtype.name}"
    if dtype.itemsize == 2:
        return (
            "compiled by Numba, one thread of the host, float32 arithmetic, rounded to "
            f"{dtype.name} after every operation"
        )
    return f"compiled by Numba, one thread of the host, {dtype.name} arithmetic"


Loop = Callable[[NDArray[Any], Any, Any], Any]
_LOOPS: Mapping[str, Loop] = MappingProxyType(
    {
        "sequential": loops.chain,
        "reverse": lambda t, grain, product: loops.chain(t[::-1], grain, product),
        "tree": loops.tree,
        "pairwise": loops.pairwise,
        "sorted_ascending": lambda t, grain, product: loops.chain(_sorted(t, descending=False), grain, product),
        "sorted_descending": lambda t, grain, product: loops.chain(_sorted(t, descending=True), grain, product),
    }
)
_COMPENSATED: Mapping[str, Callable[[NDArray[Any], Any], Any]] = MappingProxyType(
    {"kahan": loops.kahan, "neumaier": loops.neumaier}
)


def _run(method: str, terms: NDArray[Any], grain: Any, product: Any) -> Any:
    if method in _COMPENSATED:
        if product is not None:
            raise InvalidInput(
                f"{method} compensates for what additions lose, and a product has no additions", "methods"
            )
        return _COMPENSATED[method](terms, grain)
    return _LOOPS[method](terms, grain, product)


def _terms(op: str, operands: tuple[NDArray[Any], ...], to: "np.dtype[Any]") -> NDArray[Any]:
    """The terms that the op adds or multiplies, in dtype `to`."""
    if op not in _PRODUCTS:
        return operands[0].astype(to, copy=False)
    products: NDArray[Any] = np.multiply(operands[0], operands[-1], dtype=to)
    return products


def _held(terms: NDArray[Any]) -> NDArray[Any]:
    """`terms` as the loops take them: float16 and bfloat16 in float32."""
    return terms.astype(np.float32) if terms.itemsize == 2 else terms


def _sorted(t: NDArray[Any], *, descending: bool) -> NDArray[Any]:
    width = 8 * t.itemsize
    magnitude = np.uint64((1 << (width - 1)) - 1)
    patterns: NDArray[np.unsignedinteger[Any]] = loops.by_magnitude(
        t.view(f"uint{width}"), magnitude, magnitude if descending else np.uint64(0)
    )
    return patterns.view(f"float{width}")


def _finished(op: str, total: float, count: int, dtype: DType) -> float:
    """The value of `op` from the sum, rounded once to `dtype` where it is not a number of it already."""
    if not np.isfinite(total) or not total:
        return total
    exact = Fraction(total)
    if op == "norm2":
        return round_sqrt(exact.numerator, exact.denominator, 0, dtype)
    return round_ratio(exact.numerator, exact.denominator * (count if op == "mean" else 1), 0, dtype)
