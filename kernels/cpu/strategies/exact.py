"""The strategy that rounds the true value once. It gives the same bits for any order of the elements and any number of
threads."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from warpfold.kernels.backend import Progress, Reduction
from warpfold.kernels.cpu.claims import claims_on, stream_claims
from warpfold.kernels.cpu.folds import Fold, SumFold, fold_for
from warpfold.kernels.cpu.passes import FEW, select
from warpfold.kernels.cpu.pieces import pieces_of
from warpfold.kernels.cpu.strategy import CpuStrategy, first_of
from warpfold.kernels.cpu.stream import Streamed, stream
from warpfold.kernels.exact import ORIGIN, ExactState
from warpfold.kernels.ops import NanPolicy, Op, empty_value
from warpfold.kernels.ops.operands import Operands, check_reached
from warpfold.kernels.source import ArraySource, extents_of


class ExactCpuStrategy(CpuStrategy):
    """Reduces sources of any length in constant memory."""

    def reduce(
        self,
        operands: Operands,
        op: Op,
        nan_policy: NanPolicy,
        progress: Progress | None,
        *,
        compiled: bool = True,
    ) -> Reduction:
        """Reduce operands that fit `op`; unless `compiled` without compiled sums.

        Raises InvalidInput for a NaN where the policy is RAISE, where OMIT leaves nothing of an op that is undefined on
        nothing, and for an integer product beyond 65,536 bits.
        """
        if op.selects:
            return select(operands.source, op, nan_policy, progress).single(op, operands.source.dtype)
        dtype = operands.source.dtype
        streamed = _streamed(operands, op, nan_policy, progress, compiled=compiled)
        fold: Fold = streamed.fold
        count = fold.count
        if count:
            check_reached(op, count)
        value = fold.value() if count else empty_value(op, dtype)
        state = fold.state() if count or op.terms not in ORIGIN else ExactState.empty(op.terms)
        return Reduction(
            value=value,
            dtype=operands.result_dtype(op),
            count=count,
            op=op.name,
            strategy=self.name,
            correctly_rounded=True,
            load_ms=streamed.load_ms,
            kernel_ms=streamed.kernel_ms,
            stages=streamed.stages,
            state=None if state is None else state.to_bytes(),
        )

    def prepare(self, operands: Operands, op: Op) -> None:
        super().prepare(operands, replace(op, part=0) if op.picks else op)  # there is one element
        if op.selects:
            select(ArraySource(np.zeros(FEW + 1, operands.source.dtype.numpy)), op, NanPolicy.PROPAGATE, None)
        if extents_of(operands.source) and op.fold == "sum":
            taken = claims_on(first_of(operands.source), least_bytes=0)
            if taken is not None:
                stream_claims(taken, lambda: SumFold(op, [operands.source.dtype], NanPolicy.PROPAGATE))


def _streamed(
    operands: Operands, op: Op, nan_policy: NanPolicy, progress: Progress | None, *, compiled: bool
) -> Streamed[Any]:
    """The fold of all elements."""
    sources = operands.both if op.sources == 2 else (operands.source,)
    source, dtypes = operands.source, [each.dtype for each in sources]
    if compiled and op.fold == "sum" and nan_policy is NanPolicy.PROPAGATE and (taken := claims_on(source)) is not None:
        return stream_claims(taken, lambda: SumFold(op, dtypes, nan_policy), progress)
    by_index = op.in_order or nan_policy is NanPolicy.RAISE
    start = partial(fold_for, op, dtypes, nan_policy, operands.ddof, compiled=compiled)
    return stream(pieces_of(*sources, by_index=by_index), start, progress)
