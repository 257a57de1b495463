"""The true value, rounded once: any order, any number of threads, any length, the same bits."""

from kernels.backend import Progress, Reduction
from kernels.catalog import EXACT, Strategy, claims
from kernels.cpu.folds import fold_for
from kernels.cpu.stream import stream
from kernels.dtypes import DTYPES
from kernels.exact import ExactState
from kernels.ops import OPS, NanPolicy, Op, Terms, empty_value
from kernels.source import Source

_FLOAT_PRODUCTS = claims(["prod"], [row.name for row in DTYPES.values() if row.is_float])

STRATEGY = Strategy(
    name=EXACT,
    backend="cpu",
    summary="Adds in fixed point, 4096 elements at a time in the first-level cache, on all cores; reads piece by piece",
    error_bound="correctly rounded: the true value to nearest, ties to even; integers exact at any size",
    claims=claims(OPS, DTYPES) - _FLOAT_PRODUCTS,
)


def reduce(source: Source, op: Op, nan_policy: NanPolicy, progress: Progress | None) -> Reduction:
    """Reduce `source`, any length in constant memory.

    Raises InvalidInput for a NaN where the policy is RAISE, where OMIT leaves nothing of an op that is undefined on
    nothing, and for an integer product beyond 65,536 bits.
    """
    dtype = source.dtype
    streamed = stream(source, lambda: fold_for(op, dtype, nan_policy), progress)
    fold = streamed.fold
    value = fold.value() if fold.count else empty_value(op, dtype)
    state = fold.state() if fold.count or op.terms is Terms.NONE else ExactState.empty(op.terms)
    return Reduction(
        value=value,
        dtype=op.result_dtype(dtype),
        count=fold.count,
        op=op.name,
        strategy=STRATEGY.name,
        correctly_rounded=True,
        load_ms=streamed.load_ms,
        kernel_ms=streamed.kernel_ms,
        state=None if state is None else state.to_bytes(),
    )
