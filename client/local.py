"""Reductions without a service: on this machine, by the same code that the service's CPU slots run."""

import time
from typing import Any

from numpy.typing import NDArray

from client.packages import installed
from kernels import ArraySource, Reduction, Unavailable, open_backend
from kernels.dtypes import dtype_of
from kernels.errors import InvalidInput
from kernels.exact import ExactState, value_of
from kernels.operands import check, check_counts
from kernels.ops import NanPolicy, Terms, op_named


def reduce(
    array: NDArray[Any],
    op: str = "sum",
    *,
    other: NDArray[Any] | None = None,
    strategy: str = "auto",
    nan_policy: str = "propagate",
    ddof: int = 0,
) -> Reduction:
    """Reduce an array, or two, here and now.

    With the server's packages every op and every CPU strategy is there, at the speed of a CPU slot; with the base
    installation the exact strategy of sums and products, in NumPy, much slower and with the same bits. Raises
    InvalidInput, and Unavailable for what only the server's packages compute.
    """
    if installed("numba"):
        sources = [ArraySource(one) for one in (array, other) if one is not None]
        return open_backend("cpu").reduce(
            sources[0],
            op,
            strategy=strategy,
            nan_policy=_policy(nan_policy),
            ddof=ddof,
            other=sources[1] if len(sources) > 1 else None,
        )
    return _portable(array, op, other, strategy=strategy, nan_policy=nan_policy)


def _portable(array: NDArray[Any], op: str, other: NDArray[Any] | None, *, strategy: str, nan_policy: str) -> Reduction:
    row, dtype = op_named(op), dtype_of(array.dtype)
    if (
        row.terms not in (Terms.VALUES, Terms.PRODUCTS)
        or strategy not in ("auto", "exact")
        or nan_policy != "propagate"
    ):
        raise Unavailable(f"{op} needs the server's packages here: pip install 'warpfold[server]'")
    started = time.perf_counter()
    if row.sources == 2:
        if other is None:
            raise InvalidInput(f"{op} takes two arrays", "other")
        check(row, dtype, dtype_of(other.dtype), 0)
        check_counts(row, array.size, other.size)
        state = ExactState.of_products(array.reshape(-1), other.reshape(-1))
    else:
        state = ExactState.of(array, row.terms, magnitudes=op == "norm1")
    result = row.result_dtype(dtype)
    return Reduction(
        value=value_of(row, state, result),
        dtype=result,
        count=state.count,
        op=op,
        strategy="exact",
        correctly_rounded=True,
        load_ms=0.0,
        kernel_ms=(time.perf_counter() - started) * 1000,
        state=state.to_bytes(),
    )


def _policy(name: str) -> NanPolicy:
    try:
        return NanPolicy(name)
    except ValueError:
        raise InvalidInput(f"unknown NaN policy {name!r}; known: {', '.join(NanPolicy)}", "nan_policy") from None
