"""Reductions of one array, or of two, to one value."""

import base64

from warpfold.contract.json_value import check_length, hex_of
from warpfold.contract.kinds.reduce import ReduceResult, ReduceSpec
from warpfold.contract.timings import Timings
from warpfold.kernels.bench import Flag
from warpfold.kernels.ops import op_named
from warpfold.kernels.sequential import SequentialSource, counted
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.messages import Success


def run(attempt: Attempt, spec: ReduceSpec) -> Success:
    """Reduce the elements of `spec`, which are opened here. Raises a KernelError."""
    op = op_named(spec.op)
    sources = [
        (named.refusing_nulls() if op.places or op.sources > 1 else named).open(attempt.folders)
        for _, named in spec.sources()
    ]
    source, other = sources[0], sources[1] if len(sources) > 1 else None
    reduction = attempt.backend.reduce(
        source,
        spec.op,
        strategy=spec.strategy,
        nan_policy=spec.nan_policy,
        ddof=spec.ddof,
        other=other,
        progress=lambda done, total: attempt.progress(done, total, "elements"),
    )
    check_length(reduction.value)
    result = ReduceResult(
        value=reduction.value,
        hex=hex_of(reduction.value),
        dtype=reduction.dtype,
        count=reduction.count,
        op=reduction.op,
        strategy=reduction.strategy,
        correctly_rounded=reduction.correctly_rounded,
        backend=attempt.device.backend,
        device=attempt.device,
        timings=Timings(
            queued_ms=attempt.queued_ms,
            prepare_ms=reduction.prepare_ms,
            load_ms=reduction.load_ms,
            kernel_ms=reduction.kernel_ms,
            total_ms=attempt.elapsed_ms(),
        ),
        provenance=attempt.provenance,
        nulls=sum(part.tally.nulls for part in sources if isinstance(part, SequentialSource)),
        state=None if reduction.state is None else base64.b64encode(reduction.state).decode(),
    )
    point = attempt.point(
        op=reduction.op,
        dtype=source.dtype.name,
        strategy=reduction.strategy,
        n=counted(source),
        bytes=sum(counted(part) * part.dtype.itemsize for part in sources),
        samples=1,
        load_ms=reduction.load_ms,
        kernel_ms=reduction.kernel_ms,
        correctly_rounded=reduction.correctly_rounded,
        value=repr(reduction.value),
        prepare_ms=reduction.prepare_ms,
        flags=[Flag.FIRST_RUN.value] if reduction.prepare_ms else [],
    )
    return Success(result.model_dump(mode="json"), (point,))
