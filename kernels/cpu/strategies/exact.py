"""The true value, rounded once: any order, any number of threads, any length, the same bits."""

from typing import Any

from warpfold.kernels.backend import Progress, Reduction
from warpfold.kernels.catalog import EXACT, Strategy, claims
from warpfold.kernels.cpu.folds import Fold, fold_for
from warpfold.kernels.cpu.folds.dots import Dot
from warpfold.kernels.cpu.stream import One, Streamed, Two, stream
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact import ORIGIN, ExactState
from warpfold.kernels.operands import Operands
from warpfold.kernels.ops import OPS, NanPolicy, Op, empty_value

_FLOAT_PRODUCTS = claims(["prod"], [row.name for row in DTYPES.values() if row.is_float])

STRATEGY = Strategy(
    name=EXACT,
    backend="cpu",
    summary="Adds in fixed point, 4096 elements at a time in the first-level cache, on all cores; reads piece by piece",
    error_bound="correctly rounded: the true value to nearest, ties to even; integers exact at any size",
    claims=claims(OPS, DTYPES) - _FLOAT_PRODUCTS,
)


def reduce(operands: Operands, op: Op, nan_policy: NanPolicy, progress: Progress | None) -> Reduction:
    """Reduce sources of any length in constant memory.

    Raises InvalidInput for a NaN where the policy is RAISE, where OMIT leaves nothing of an op that is undefined on
    nothing, and for an integer product beyond 65,536 bits.
    """
    dtype = operands.source.dtype
    streamed: Streamed[Any]
    if op.sources == 2:
        first, second = operands.both
        streamed = stream(Two(first, second), lambda: Dot(op, first.dtype, second.dtype, nan_policy), progress)
    else:
        streamed = stream(One(operands.source), lambda: fold_for(op, dtype, nan_policy, operands.ddof), progress)
    fold: Fold[Any] = streamed.fold
    value = fold.value() if fold.count else empty_value(op, dtype)
    state = fold.state() if fold.count or op.terms not in ORIGIN else ExactState.empty(op.terms)
    return Reduction(
        value=value,
        dtype=operands.result_dtype(op),
        count=fold.count,
        op=op.name,
        strategy=STRATEGY.name,
        correctly_rounded=True,
        load_ms=streamed.load_ms,
        kernel_ms=streamed.kernel_ms,
        state=None if state is None else state.to_bytes(),
    )
