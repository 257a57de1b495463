"""Reductions of one array, or of two, to one value."""

import base64
from collections.abc import Callable, Sequence

from warpfold.contract.json_value import check_length, hex_of
from warpfold.contract.kinds.reduce import InputView, ReduceResult, ReduceSpec
from warpfold.contract.timings import Timings
from warpfold.kernels.bench import Flag
from warpfold.kernels.ops import op_named
from warpfold.kernels.sequential import Elements, SequentialSource, counted
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
        progress=_progress(attempt, sources),
    )
    check_length(reduction.value)
    decoded = [part for part in sources if isinstance(part, SequentialSource)]
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
        nulls=sum(part.tally.nulls for part in decoded),
        input=InputView.of([remote.facts() for part in decoded for remote in part.tally.objects]),
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


def _progress(attempt: Attempt, sources: Sequence[Elements]) -> Callable[[int, int], None]:
    """Reports elements; of what is read by URLs, the bytes that they take."""

    def report(done: int, total: int) -> None:
        if any(isinstance(part, SequentialSource) and part.tally.objects for part in sources):
            itemsize = sources[0].dtype.itemsize
            attempt.progress(done * itemsize, total * itemsize, "bytes")
        else:
            attempt.progress(done, total, "elements")

    return report
