"""Which strategy computes which op of which dtype on which backend. Imports no device library."""

from functools import cache, lru_cache

from warpfold.kernels.cpu.strategies.rows import CPU_ROWS
from warpfold.kernels.cuda.strategies.rows import cuda_rows
from warpfold.kernels.dtypes import DTYPES, DType, Kind
from warpfold.kernels.errors import InvalidInput, unknown
from warpfold.kernels.ops import OPS, Op, Terms, terms_of
from warpfold.kernels.strategy import AUTO, EXACT, Strategy


@cache
def strategies() -> tuple[Strategy, ...]:
    """The rows of all strategies of all backends, whether or not this machine can run them. They are read once."""
    return (*CPU_ROWS, *cuda_rows())


def strategy_names() -> tuple[str, ...]:
    """The names a request may give, "auto" first."""
    return (AUTO, *dict.fromkeys(strategy.name for strategy in strategies()))


@lru_cache(maxsize=4096)  # every spec of a batch asks, and the rows never change
def backends_for(op: Op, dtype: DType, strategy: str, other: DType | None = None) -> tuple[str, ...]:
    """The backends on which `strategy` computes `op` of `dtype`, for an op of two sources `dtype` with `other`.

    Raises InvalidInput naming the field, if there is no such strategy or it claims the pair on no backend.
    """
    known = strategies()
    if strategy != AUTO and all(strategy != row.name for row in known):
        raise unknown("strategy", strategy, strategy_names(), "strategy")
    able = (row for row in known if strategy in (AUTO, row.name) and row.computes(op, dtype, other))
    backends = tuple(dict.fromkeys(row.backend for row in able))
    if not backends:
        raise InvalidInput(f"strategy {strategy!r} does not compute {_named(op, dtype, other)}", "strategy")
    return backends


def backends_of_any(op: Op, strategy: str) -> tuple[str, ...]:
    """The backends on which `strategy` computes `op` of some dtype. Raises InvalidInput naming "strategy"."""
    able = (row for row in strategies() if strategy in (AUTO, row.name))
    backends = (row.backend for row in able if any(row.computes(op, dtype) for dtype in DTYPES.values()))
    if not (known := tuple(dict.fromkeys(backends))):
        raise InvalidInput(f"strategy {strategy!r} does not compute {op.name}", "strategy")
    return known


def resolve(op: Op, dtype: DType, strategy: str, backend: str, other: DType | None = None) -> str:
    """The strategy to run on `backend`: `strategy` itself, or for "auto" the exact one where it claims the pair,
    else the backend's first that does. Raises InvalidInput if none does."""
    if backend not in backends_for(op, dtype, strategy, other):
        raise InvalidInput(
            f"strategy {strategy!r} does not compute {_named(op, dtype, other)} on backend {backend!r}", "strategy"
        )
    if strategy != AUTO:
        return strategy
    able = [row.name for row in strategies() if row.backend == backend and row.computes(op, dtype, other)]
    return EXACT if EXACT in able else able[0]


def resolve_grouped(op: Op, dtype: DType | None, strategy: str) -> str:
    """The strategy by which `op` is reduced to many values, along axes or by segments: the exact one, or NumPy's for
    products of floats, which round. A dtype of None is not known yet. Raises InvalidInput where `strategy` is another.
    """
    able: tuple[str, ...] = (EXACT,) if not op.multiplies or (dtype is not None and not dtype.is_float) else ("numpy",)
    if op.multiplies and dtype is None:
        able = (EXACT, "numpy")
    if strategy not in (AUTO, *able):
        raise InvalidInput(
            f"strategy {strategy!r} does not compute {op.name} along an axis or by segments; known: "
            f"{', '.join((AUTO, *able))}",
            "strategy",
        )
    return able[0]


_BY_KEY_ON_GPU = frozenset(("sum", "moments", "totals", "extreme", "nonzero", "dot"))
"""The folds, by their names in rows of ops, whose GPU kernels make values by key."""
_MANY_ON_GPU = _BY_KEY_ON_GPU | {"quantile", "distinct", "mode", "picked", "span", "histogram", "count"}
"""Those whose GPU kernels make many values along axes and by segments."""


def _on_cpu_alone(on_gpu: frozenset[str]) -> str:
    names = ", ".join(op.name for op in OPS.values() if op.fold not in on_gpu and not op.multiplies)
    return f"{names} and products of numbers" if names else "products of numbers"


NOT_MANY_ON_GPU = _on_cpu_alone(_MANY_ON_GPU)
"""In words, what `grouped_backends` leaves to a CPU."""
NOT_BY_KEY_ON_GPU = _on_cpu_alone(_BY_KEY_ON_GPU)
"""In words, what `keyed_backends` leaves to a CPU."""


def grouped_backends(op: Op, dtype: DType | None) -> tuple[str, ...]:
    """The backends on which `op` is reduced to many values: a GPU does not multiply numbers there. A dtype of None is
    not known yet."""
    tests = op.fold == "product" and dtype is not None and dtype.kind is Kind.BOOL  # whether all elements are true
    return ("cpu", "cuda") if op.fold in _MANY_ON_GPU or tests else ("cpu",)


ROLLING_IN_WORDS = (
    "sum, mean, norm1, sum_squares, norm2, rms, var, std, sem, min, max, norm_inf, count, count_nonzero, any and all"
)
"""The ops that windows have, in words."""
WINDOWS = "windows that move along an array"


def check_rolling(op: Op) -> None:
    """Raise InvalidInput naming "op" unless windows that move along an array have values of it."""
    adds = op.adds and op.sources == 1 and set(terms_of(op)) <= {Terms.VALUES, Terms.PRODUCTS}
    if op.places or not (adds or op.fold in ("extreme", "nonzero", "count")):
        raise InvalidInput(f"windows have {ROLLING_IN_WORDS}, not {op.name}", "op")


def rolling_backends(op: Op) -> tuple[str, ...]:
    """The backends that have windows of `op`: a GPU adds elements, counts them and looks for extremes, and adds no
    squares there. Where numbers are too far apart for it, its host computes them."""
    return ("cpu", "cuda") if op.terms in (Terms.VALUES, Terms.NONE) else ("cpu",)


def check_rolling_on(op: Op, backend: str) -> None:
    """Raise InvalidInput naming "backend" unless `backend` has windows of `op`."""
    able = rolling_backends(op)
    if backend not in ("auto", *able):
        raise InvalidInput(f"windows of {op.name} need the backend {', '.join(able)} or auto", "backend")


def finished_on_gpu(op: Op, dtype: DType | None) -> bool:
    """Whether a GPU makes many values of `op` by kernels for many values, and the host only hands them on. It rounds
    sums, means, sums of squares, norm2, dot, var and std of float32 and float64, and has nothing to round where an op
    selects or tests elements. Of all other sums of floats a block of threads makes each value, and the host finishes
    squares and magnitudes of integers."""
    if op.terms is Terms.TOTALS:
        return False
    if dtype is None or not op.rounds:
        return True
    if dtype.is_float:
        return op.adds and not op.magnitudes and dtype.name in ("float32", "float64")
    return op.terms is Terms.VALUES and not op.magnitudes


def refused_on_gpu(op: Op, dtype: DType | None) -> str:
    """Why a GPU does not reduce this to many values."""
    what = op.name if dtype is None else _named(op, dtype, None)
    return (
        f"along an axis or by segments a GPU computes every op but {NOT_MANY_ON_GPU}: {what} needs the backend cpu "
        "or auto"
    )


def keyed_backends(op: Op, dtype: DType | None) -> tuple[str, ...]:
    """The backends on which `op` is reduced by key: a GPU neither multiplies numbers there, nor puts elements in order.
    A dtype of None is not known yet."""
    able = op.sources == 1 and (op.fold in _BY_KEY_ON_GPU or op.multiplies)
    return grouped_backends(op, dtype) if able else ("cpu",)


def refused_by_key(op: Op, dtype: DType | None) -> str:
    """Why a GPU does not reduce this by key."""
    what = op.name if dtype is None else _named(op, dtype, None)
    return f"by key a GPU computes every op but {NOT_BY_KEY_ON_GPU}: {what} needs the backend cpu or auto"


def _named(op: Op, dtype: DType, other: DType | None) -> str:
    return f"{op.name} of {dtype.name}" + (f" with {other.name}" if other is not None else "")
